"""The smallest count is the true smallest: against every layout that divides, by plain loops.

The loops know nothing of what the search leaves out: any divisor may split the GPUs, any
interleaving and recomputation goes. Memory is one formula for both.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import ceil

import numpy as np
import pytest

from engine.estimate.memory import USABLE
from engine.estimate.model_shape import shape_from_config
from engine.estimate.parallelism import UNEVEN, Plans, enumerate_plans
from engine.estimate.plan import Task
from engine.estimate.plan_space import memory_of
from engine.estimate.search import smallest_fit
from engine.estimate.shape import ModelShape
from engine.estimate.training_hardware import HardwareChoice, hardware
from engine.estimate.training_job import Job, NothingFits
from tests.estimate.training_models import A100, B8, B70, H100, MIXTRAL, llama, on

TASKS: tuple[Task, ...] = ("pretrain", "finetune", "lora", "qlora")
CARDS = (A100, H100, "a100-sxm-40gb", "h200-sxm-141gb", "b200-sxm-180gb", "l40s", "rtx-4090")


@dataclass(frozen=True)
class Ask:
    """A job, and the sizes that its fleets may have at most."""

    name: str
    job: Job
    choice: HardwareChoice
    most: int = 96


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def splits(s: ModelShape, tp: int) -> bool:
    widths = [w for w in (s.heads, s.ffn, s.expert_ffn) if w]
    return all(w % tp == 0 for w in widths) and (s.kv_heads % tp == 0 or tp % s.kv_heads == 0)


def layouts(ask: Ask, n: int, domain: float) -> np.ndarray:
    """Every way to split n GPUs, one sequence a micro-batch: rows in the order of `Plans`."""
    s, seq, task = ask.job.shape, ask.job.seq_len, ask.job.task
    rows = []
    for tp in (t for t in divisors(n) if t <= min(8, domain) and splits(s, t)):
        for pp in (p for p in divisors(n // tp) if ceil(s.layers / p) * p <= UNEVEN * s.layers):
            for cp in divisors(n // tp // pp):
                if cp > 1 and (seq % (2 * cp) or seq / cp < 4096):
                    continue
                if task == "qlora" and tp * pp * cp > 1:
                    continue  # 4-bit weights are shared, never split
                ranks = n // tp // pp
                eps = [1]
                if s.is_moe and task != "qlora":
                    eps = [e for e in divisors(n // pp) if s.experts % e == 0]
                zeros = [1]
                if ranks > 1 and pp == 1:
                    zeros = [1, 2, 3] if task in ("pretrain", "finetune") else [1, 3]
                chunks = [v for v in range(1, 9)
                          if v == 1 or (pp > 1 and ceil(s.layers / pp / v) * pp * v
                                        <= UNEVEN * s.layers)]  # fmt: skip
                rows += [
                    (n, ranks // cp * pp, tp, pp, v, cp, ep, ranks // cp, zero, ranks, 1, pp,
                     again, ceil(s.layers / (pp * v)) * pp * v)
                    for ep in eps for zero in zeros for v in chunks for again in (0, 1, 2)
                ]  # fmt: skip
    return np.array(rows, dtype=float)


def by_loops(ask: Ask) -> int | None:
    """The fewest GPUs on which any of these layouts fits; whole machines beyond one."""
    hw = hardware(ask.choice, ask.job.precision)[0]
    for n in [*range(1, hw.node), *range(hw.node, ask.most + 1, hw.node)]:
        rows = layouts(ask, n, hw.domain)
        if len(rows):
            need = memory_of(ask.job, Plans(*rows.T), hw).total
            if float(np.min(need)) <= hw.memory_gib * USABLE:
                return n
    return None


def some_model(r: random.Random, sparse: bool) -> ModelShape:
    layers, hidden = r.choice((24, 32, 40, 48, 64)), r.choice((2048, 4096, 5120, 6144))
    heads = hidden // 128
    keys = r.choice([k for k in (2, 4, 8, heads) if heads % k == 0])
    if not sparse:
        return llama(layers, hidden, heads, r.choice((3 * hidden, 4 * hidden)), keys)
    experts = r.choice((8, 16, 64, 160))
    return shape_from_config(
        {
            "model_type": "mixtral", "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": keys, "vocab_size": 128_256,
            "intermediate_size": r.choice((1536, 2048)), "num_local_experts": experts,
            "num_experts_per_tok": r.choice((2, 4)),
        }
    )  # fmt: skip


def twenty() -> list[Ask]:
    """Dense models and mixtures, by turns from scratch, whole, LoRA and QLoRA."""
    r = random.Random(20261203)
    asks = []
    for i in range(20):
        shape, task = some_model(r, sparse=i % 2 == 1), TASKS[i // 2 % 4]
        card, seq = r.choice(CARDS), r.choice((1024, 4096, 8192, 32_768, 65_536))
        choice = on(card, "roce-400g")
        job = Job(shape, 1e9, (choice,), seq_len=seq, task=task)
        kind = "mixture" if shape.is_moe else "dense"
        asks.append(Ask(f"{i}: {kind}, {task}, {card}, {seq}", job, choice))
    return asks


@pytest.mark.parametrize("ask", twenty(), ids=lambda ask: ask.name)
def test_no_layout_at_all_fits_fewer(ask: Ask) -> None:
    told = smallest_fit(ask.job)
    count = None if isinstance(told, NothingFits) else told.plan.gpus
    if count is not None and count > ask.most:
        count = None
    assert count == by_loops(ask)


def test_six_cards_of_one_machine_may_split_the_heads_by_six() -> None:
    # 32B with adapters at 65,536 tokens: the weights are 60 GiB, a sixth of them 10 GiB; 64 layers
    # x 65,536 tokens x 6,144 x 2 bytes of kept inputs are 48 GiB, a sixth 8 GiB; 48 heads and 48
    # groups of keys divide by six. Five don't divide, four hold 15 + 12 GiB and the loss.
    choice = on("a100-sxm-40gb", "roce-400g")
    job = Job(llama(64, 6144, 48, 24_576, 48, 32_000), 1e9, (choice,), 65_536, task="lora")
    told = smallest_fit(job)
    assert not isinstance(told, NothingFits)
    assert told.plan.gpus == by_loops(Ask("six", job, choice))
    assert told.plan.gpus <= 6


def test_tensor_parallelism_stays_in_a_machine() -> None:
    # 24 GPUs are three machines of eight: groups of 3 or 6 would straddle two of them.
    shape = llama(48, 6144, 48, 24_576, 48, 32_000)
    hw = hardware(on(H100, "roce-400g"), "bf16")[0]
    many = enumerate_plans(shape, hw, 24, 4096, 48, "pretrain")
    assert set(many.tp.tolist()) == {1.0, 2.0, 4.0, 8.0}
    one = enumerate_plans(shape, hw, 6, 4096, 48, "pretrain")
    assert set(one.tp.tolist()) == {1.0, 2.0, 3.0, 6.0}


def test_experts_are_spread_over_whole_machines() -> None:
    # 160 experts on ten machines of eight: two a GPU on all 80; five or ten would straddle two.
    shape = shape_from_config(
        {
            "model_type": "mixtral", "hidden_size": 5120, "num_hidden_layers": 48,
            "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 1536,
            "vocab_size": 128_256, "num_local_experts": 160, "num_experts_per_tok": 6,
        }
    )  # fmt: skip
    hw = hardware(on(H100, "roce-400g"), "bf16")[0]
    plans = enumerate_plans(shape, hw, 80, 4096, 160, "pretrain")
    assert set(plans.ep.tolist()) == {1.0, 2.0, 4.0, 8.0, 16.0, 40.0, 80.0}


def test_pipelines_are_looked_at_without_interleaving_too() -> None:
    # Interleaving by v holds 1 + (p − 1)/(p·v) times the activations: by 4 on two stages 1.125.
    hw = hardware(on(H100, "roce-400g"), "bf16")[0]
    plans = enumerate_plans(B8, hw, 16, 8192, 64, "pretrain")
    two = plans.take(plans.pp == 2)
    assert (two.vp == 1).sum() == (two.vp > 1).sum() > 0
    job = Job(B8, 1e9, (on(H100, "roce-400g"),), seq_len=8192)
    same = (two.tp == 1) & (two.cp == 1) & (two.micro_batch == 1)
    need = memory_of(job, two.take(same), hw)
    flat = np.asarray(need.activations)[two.vp[same] == 1]
    deep = np.asarray(need.activations)[two.vp[same] > 1]
    assert (flat < deep).all()


L7, L70 = llama(32, 4096, 32, 11_008, 32, 32_000), llama(80, 8192, 64, 28_672, 8, 32_000)
L65, Q32 = llama(80, 8192, 64, 22_016, 64, 32_000), llama(64, 5120, 40, 27_648, 8, 152_064)
GPT_22B = shape_from_config(
    {"model_type": "gpt2", "n_embd": 6144, "n_layer": 48, "n_head": 64, "n_positions": 2048,
     "vocab_size": 51_200}
)  # fmt: skip
# Model, card, task, tokens of a sequence, rank; the largest count that is known not to do, and the
# smallest on which it was run. Sources as in `test_published_configurations` and
# `measured_memory_notes.csv`; where none says what does not do, the states alone do, by hand.
PUBLISHED: dict[str, tuple[ModelShape, str, Task, int, int, int, int]] = {
    # stanford_alpaca, issue 56 (one A100 of 80 GB is too few) and its README (four, FSDP).
    "Alpaca 7B in full": (L7, A100, "finetune", 512, 16, 1, 4),
    # LitGPT, issue 242 (16 GB are too few) and its table (21.3 GB).
    "LoRA of 7B on 16 GB": (L7, "t4", "lora", 512, 8, 1, 2),
    "LoRA of 7B on 24 GB": (L7, "rtx-4090", "lora", 1024, 8, 0, 1),
    # arXiv 2305.14314: one card of 48 GB, with moments in pages of the host; one more without.
    "QLoRA of 65B on 48 GB": (L65, "l40s", "qlora", 512, 64, 0, 2),
    # LLaMA-Factory, issue 4559: a copy on each card of 24 GB does not do; four share 41 GiB.
    "QLoRA of 70B on 24 GB": (B70, "rtx-4090", "qlora", 512, 16, 1, 4),
    # LLaVA, issue 978; 46.7e9 x 16 bytes are 695 GiB, of which nine cards hold 716 at the brim.
    "Mixtral in full": (MIXTRAL, H100, "finetune", 2048, 16, 9, 16),
    # Hugging Face's run on 16; eight hold 640 GiB of 1,028.
    "Llama 2 70B in full": (L70, A100, "finetune", 2048, 16, 8, 16),
    # simplescaling/s1, issue 25: states of 488 GiB alone fill six cards, 16 were taken.
    "s1 32B": (Q32, H100, "finetune", 20_000, 16, 6, 16),
    # unslothai/unsloth README: largest contexts of Hugging Face's code, a tenth more and less.
    "8B, 6,368 tokens, 24 GB": (B8, "rtx-4090", "qlora", 6368, 32, 1, 2),
    "8B, 5,210 tokens, 24 GB": (B8, "rtx-4090", "qlora", 5210, 32, 0, 1),
    "8B, 13,490 tokens, 40 GB": (B8, "a100-sxm-40gb", "qlora", 13_490, 32, 1, 2),
    "70B, 7,608 tokens, 80 GB": (B70, A100, "qlora", 7608, 32, 1, 2),
    "70B, 6,224 tokens, 80 GB": (B70, A100, "qlora", 6224, 32, 0, 2),
    # arXiv 2205.05198: eight cards; 22e9 x 16 bytes are 328 GiB, more than four hold.
    "GPT 22B from scratch": (GPT_22B, A100, "pretrain", 2048, 16, 4, 8),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configurations_never_get_too_few(name: str) -> None:
    shape, card, task, tokens, rank, too_few, ran = PUBLISHED[name]
    job = Job(shape, 1e9, (on(card, "ib-hdr200"),), tokens, task=task, lora_rank=rank)
    told = smallest_fit(job)
    assert not isinstance(told, NothingFits)
    assert too_few < told.plan.gpus <= ran
