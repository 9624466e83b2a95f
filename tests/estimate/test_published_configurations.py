"""Published training runs: the memory fits where it was run, and smaller clusters don't.

Each case is a configuration that its source states: model, cards, parallel sizes, micro-batch and
recomputation. What a source leaves open is said in the comment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest

from engine.estimate.memory import (
    SCHEDULES,
    MemoryBreakdown,
    Schedule,
    as_items,
    fits,
    memory_of_plans,
)
from engine.estimate.memory_terms import calibration
from engine.estimate.plan import TrainingPlan
from engine.estimate.shape import ModelShape

A100_40, A100_80, H100_80, H100_96 = 40.0, 80.0, 79.6, 95.0  # GiB that the cards report
RTX4090, RTX3090, CARD_48 = 24.0, 24.0, 48.0


def decoder(
    params_b: float, layers: int, hidden: int, heads: int, ffn: int, vocab: int,
    kv_heads: int | None = None, *, gated: bool = True, tied: bool = False,
) -> ModelShape:  # fmt: skip
    tables = (1 if tied else 2) * vocab * hidden
    return ModelShape(
        name="published", total_params=params_b * 1e9, active_params=params_b * 1e9,
        embedding_params=float(tables), layers=layers, hidden=hidden, heads=heads,
        kv_heads=kv_heads or heads, head_dim=hidden // heads, ffn=ffn, vocab=vocab,
        gated_mlp=gated, tied_embeddings=tied,
    )  # fmt: skip


# Two-matrix models share embedding and head, as GPT does.
def gpt(params_b: float, layers: int, hidden: int, heads: int, vocab: int = 51_200) -> ModelShape:
    return decoder(params_b, layers, hidden, heads, 4 * hidden, vocab, gated=False, tied=True)


LLAMA2_7B = decoder(6.738, 32, 4096, 32, 11_008, 32_000)
LLAMA2_13B = decoder(13.016, 40, 5120, 40, 13_824, 32_000)
LLAMA2_70B = decoder(68.977, 80, 8192, 64, 28_672, 32_000, 8)
LLAMA3_8B = decoder(8.030, 32, 4096, 32, 14_336, 128_256, 8)
LLAMA3_70B = decoder(70.554, 80, 8192, 64, 28_672, 128_256, 8)
LLAMA3_405B = decoder(405.85, 126, 16_384, 128, 53_248, 128_256, 8)
BLOOM = gpt(176.25, 70, 14_336, 112, 250_880)
NEOX_20B = decoder(20.55, 44, 6144, 64, 24_576, 50_432, gated=False)
MPT_7B = gpt(6.649, 32, 4096, 32, 50_368)
MPT_13B = gpt(12.853, 40, 5120, 40, 50_368)
MPT_30B = gpt(29.975, 48, 7168, 56, 50_368)
MPT_70B = gpt(64.862, 80, 8192, 64, 50_368)
DEEPSEEK_V3 = ModelShape(
    name="DeepSeek-V3", total_params=671.026e9, active_params=37.552e9,
    embedding_params=2 * 129_280 * 7168.0, layers=61, hidden=7168, heads=128, kv_heads=128,
    head_dim=56, ffn=18_432, vocab=129_280, attention="mla", mla_cache_width=576, experts=256,
    experts_per_token=8, shared_experts=1, expert_ffn=2048, dense_layers=3,
)  # fmt: skip
QWEN3_235B = ModelShape(
    name="Qwen3-235B-A22B", total_params=235.094e9, active_params=22.19e9,
    embedding_params=2 * 151_936 * 4096.0, layers=94, hidden=4096, heads=64, kv_heads=4,
    head_dim=128, ffn=12_288, vocab=151_936, experts=128, experts_per_token=8, expert_ffn=1536,
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A configuration as published; `more` are columns that a plan does not have."""

    name: str
    shape: ModelShape
    card_gib: float
    plan: TrainingPlan
    more: dict[str, float] = field(default_factory=dict)
    schedule: Schedule = "1f1b"


def megatron(gpus: int, **sizes: object) -> TrainingPlan:
    return TrainingPlan(gpus=gpus, stack="megatron", **sizes)  # type: ignore[arg-type]


def sharded(gpus: int, **sizes: object) -> TrainingPlan:
    return TrainingPlan(gpus=gpus, stack="fsdp", zero_stage=3, **sizes)  # type: ignore[arg-type]


def alone(**sizes: object) -> TrainingPlan:
    return TrainingPlan(gpus=1, stack="other", **sizes)  # type: ignore[arg-type]


FUSED = calibration().logit_bytes_fused
PIECES = calibration().logit_bytes_chunked
RUNS = [
    # Narayanan et al. 2021, arXiv 2104.04473, table 1: a trillion parameters on 3,072 A100 80 GB,
    # tensor 8, pipeline 64; all activations computed again, no sharding of states. Micro-batch 1.
    Run("Megatron 1T", gpt(1008.0, 128, 25_600, 160), A100_80,
        megatron(3072, tp=8, pp=64, seq_len=2048, global_batch_seqs=3072, recompute="full",
                 precision="fp16", sequence_parallel=False, flash_attention=False)),
    # The same table: 530 billion on 2,520, tensor 8, pipeline 35.
    Run("Megatron 530B", gpt(529.6, 105, 20_480, 128), A100_80,
        megatron(2520, tp=8, pp=35, seq_len=2048, global_batch_seqs=2520, recompute="full",
                 precision="fp16", sequence_parallel=False, flash_attention=False)),
    # The same table: 18.4 billion on 256, tensor 8, data parallel 32. Micro-batch 4 assumed.
    Run("Megatron 18B", gpt(18.4, 40, 6144, 48), A100_80,
        megatron(256, tp=8, seq_len=2048, micro_batch=4, global_batch_seqs=1024, recompute="full",
                 precision="fp16", sequence_parallel=False, flash_attention=False)),
    # Korthikanti et al. 2022, arXiv 2205.05198, tables 3 and 4: A100 80 GB, selective
    # recomputation and sequence parallelism; data parallel 1.
    Run("Korthikanti 22B", gpt(22.0, 48, 6144, 64), A100_80,
        megatron(8, tp=8, seq_len=2048, micro_batch=4, global_batch_seqs=4, precision="fp16",
                 recompute="selective", flash_attention=False)),
    Run("Korthikanti 175B", gpt(174.6, 96, 12_288, 96), A100_80,
        megatron(64, tp=8, pp=8, vp=3, seq_len=2048, global_batch_seqs=64, precision="fp16",
                 recompute="selective", flash_attention=False)),
    Run("Korthikanti 530B", gpt(529.6, 105, 20_480, 128), A100_80,
        megatron(280, tp=8, pp=35, vp=3, seq_len=2048, global_batch_seqs=280, precision="fp16",
                 recompute="selective", flash_attention=False)),
    Run("Korthikanti 1T", gpt(1008.0, 128, 25_600, 160), A100_80,
        megatron(512, tp=8, pp=64, seq_len=2048, global_batch_seqs=512, precision="fp16",
                 recompute="selective", flash_attention=False)),
    # Smith et al. 2022, arXiv 2201.11990: MT-NLG 530B, 2,240 A100 80 GB, tensor 8, pipeline 35.
    Run("MT-NLG 530B", gpt(529.6, 105, 20_480, 128), A100_80,
        TrainingPlan(gpus=2240, tp=8, pp=35, zero_stage=1, seq_len=2048, global_batch_seqs=1920,
                     recompute="full", stack="deepspeed", sequence_parallel=False,
                     flash_attention=False)),
    # BigScience 2022, arXiv 2211.05100, section 3.4: 384 A100 80 GB, tensor 4, pipeline 12,
    # micro-batch 2, states of the optimizer sharded, gradients added up in 32 bits.
    Run("BLOOM 176B", BLOOM, A100_80,
        TrainingPlan(gpus=384, tp=4, pp=12, zero_stage=1, micro_batch=2, seq_len=2048,
                     global_batch_seqs=2048, recompute="full", stack="deepspeed",
                     sequence_parallel=False, flash_attention=False)),
    # Black et al. 2022, arXiv 2204.06745: GPT-NeoX-20B, 96 A100 40 GB, tensor 2, pipeline 4,
    # micro-batch 4, ZeRO stage 1, fp16.
    Run("GPT-NeoX-20B", NEOX_20B, A100_40,
        TrainingPlan(gpus=96, tp=2, pp=4, zero_stage=1, micro_batch=4, seq_len=2048,
                     global_batch_seqs=1536, recompute="full", precision="fp16",
                     stack="deepspeed", sequence_parallel=False, flash_attention=False)),
    # Zhang et al. 2022, arXiv 2205.01068: OPT-175B, 992 A100 80 GB, FSDP with tensor parallel 8.
    # The micro-batch is not stated: 8 sequences a replica make its batch of two million tokens.
    Run("OPT-175B", gpt(175.0, 96, 12_288, 96, 50_272), A100_80,
        sharded(992, tp=8, micro_batch=8, seq_len=2048, recompute="full", precision="fp16",
                sequence_parallel=False, flash_attention=False)),
    # Jiang et al. 2024, arXiv 2402.15627 (MegaScale), table 2: the Megatron-LM baseline, 175B on
    # 256, tensor 8, pipeline 8 in 6 virtual stages. Micro-batch 1.
    Run("MegaScale's 175B baseline", gpt(174.6, 96, 12_288, 96), A100_80,
        megatron(256, tp=8, pp=8, vp=6, zero_stage=1, seq_len=2048, global_batch_seqs=768,
                 recompute="selective")),
    # llm-foundry's tables of MPT on A100 40 GB and H100 80 GB: FSDP, fused loss, the largest
    # micro-batches that fit.
    Run("MPT-7B", MPT_7B, A100_40,
        sharded(8, micro_batch=12, seq_len=2048, global_batch_seqs=384, recompute="full"),
        {"logit_bytes": FUSED}),
    Run("MPT-13B", MPT_13B, A100_40,
        sharded(8, micro_batch=4, seq_len=2048, global_batch_seqs=512, recompute="full"),
        {"logit_bytes": FUSED}),
    Run("MPT-30B", MPT_30B, H100_80,
        sharded(128, micro_batch=8, seq_len=2048, recompute="full"), {"logit_bytes": FUSED}),
    Run("MPT-70B", MPT_70B, H100_80,
        sharded(128, micro_batch=8, seq_len=2048, recompute="full"), {"logit_bytes": FUSED}),
    # Groeneveld et al. 2024, arXiv 2402.00838: OLMo-7B, 27 nodes of A100 40 GB, FSDP, micro-batch
    # 2. Recomputation is not stated: none is the hardest case.
    Run("OLMo-7B", decoder(6.888, 32, 4096, 32, 11_008, 50_304), A100_40,
        sharded(216, micro_batch=2, seq_len=2048, recompute="none")),
    # Zhang et al. 2024, arXiv 2401.02385: TinyLlama on 16 A100 40 GB, micro-batch 8, fused kernels.
    Run("TinyLlama 1.1B", decoder(1.1, 22, 2048, 32, 5632, 32_000, 4), A100_40,
        sharded(16, micro_batch=8, seq_len=2048, global_batch_seqs=1024),
        {"eager": 0.0, "logit_bytes": FUSED}),
    # Liang et al. 2024, arXiv 2410.06511 (torchtitan), table 1: Llama 3.1 8B on 8 H100 of 96 GB,
    # FSDP2, selective recomputation op by op, batch 2 a GPU.
    Run("torchtitan 8B", LLAMA3_8B, H100_96,
        sharded(8, micro_batch=2, seq_len=8192, recompute="selective")),
    Run("torchtitan 8B on 128", LLAMA3_8B, H100_96,
        sharded(128, micro_batch=2, seq_len=8192, recompute="selective")),
    # The same paper, table 3: 70B on 256, FSDP 32 with tensor parallel 8, batch 16, full
    # recomputation, compiled.
    Run("torchtitan 70B", LLAMA3_70B, H100_96,
        sharded(256, tp=8, micro_batch=16, seq_len=8192, recompute="full"), {"eager": 0.0}),
    # Llama team 2024, arXiv 2407.21783, section 3.3 and table 4: 405B on 8,192 H100, tensor 8,
    # pipeline 16, data 64 with sharded states and gradients, nothing computed again; the first
    # and the last stage have a layer less. Virtual stages are not stated: none.
    Run("Llama 3 405B", LLAMA3_405B, H100_80,
        megatron(8192, tp=8, pp=16, zero_stage=2, seq_len=8192, global_batch_seqs=2048)),
    # The same table: sequences of 131,072 over 16 context ranks on 16,384.
    Run("Llama 3 405B at 131K", LLAMA3_405B, H100_80,
        megatron(16_384, tp=8, pp=16, cp=16, zero_stage=2, seq_len=131_072, global_batch_seqs=128,
                 recompute="full")),
    # Adler et al. 2024, arXiv 2406.11704: Nemotron-4 340B, 6,144 H100, tensor 8, pipeline 12 in 8
    # virtual stages, optimizer sharded. Recomputation is not stated; full is the safe case.
    Run("Nemotron-4 340B",
        decoder(341.0, 96, 18_432, 96, 73_728, 256_000, 8, gated=False), H100_80,
        megatron(6144, tp=8, pp=12, vp=8, zero_stage=1, seq_len=4096, global_batch_seqs=2304,
                 recompute="full")),
    # DeepSeek-AI 2024, arXiv 2412.19437, sections 3.2 and 3.3: 2,048 H800, pipeline 16 (DualPipe),
    # expert 64, ZeRO-1, weights in 8 bits, moments in 16. Micro-batch 1. Of a token's 561 kB a
    # layer at 16 bits they keep about 167: block inputs 29, compressed queries and keys 4, the
    # attention's output 33, and in 8 bits the experts' inputs 64 and their gates' 37.
    Run("DeepSeek-V3", DEEPSEEK_V3, H100_80,
        megatron(2048, pp=16, ep=64, zero_stage=1, seq_len=4096, global_batch_seqs=15_360,
                 ), {"moment_bytes": 4.0, "trained_bytes": 1.0, "kept_share": 167 / 561},
        "dualpipe"),
    # Megatron-Core's report on mixtures (2025): Qwen3-235B on 256 H100, tensor 2, pipeline 8 in 4
    # virtual stages, expert 32; norms and activations computed again.
    Run("Qwen3-235B", QWEN3_235B, H100_80,
        megatron(256, tp=2, pp=8, vp=4, ep=32, zero_stage=1, seq_len=4096,
                 global_batch_seqs=2048), {"lean": 1.0}),
    # Hugging Face 2023, "Fine-tuning Llama 2 70B using PyTorch FSDP": 16 A100 80 GB, full
    # recomputation, micro-batch 1, sequences of 2,048.
    Run("Llama 2 70B fine-tuned on 16", LLAMA2_70B, A100_80,
        sharded(16, task="finetune", seq_len=2048, recompute="full")),
    # LitGPT's resource tables: LoRA of Llama 2 7B on one A100 40 GB, 16-bit weights; sequences of
    # up to 1,304 tokens.
    Run("LoRA of Llama 2 7B on one GPU", LLAMA2_7B, A100_40,
        alone(task="lora", lora_rank=8, seq_len=1304, master_weights=False)),
    # torchtune's README: LoRA and QLoRA of Llama 3 8B on one RTX 4090, sequences of 2,048, batch 2.
    Run("LoRA of Llama 3 8B on one GPU", LLAMA3_8B, RTX4090,
        alone(task="lora", lora_rank=8, seq_len=2048, micro_batch=2, recompute="full"),
        {"logit_bytes": PIECES}),
    Run("QLoRA of Llama 3 8B on one GPU", LLAMA3_8B, RTX4090,
        alone(task="qlora", lora_rank=8, seq_len=2048, micro_batch=2, recompute="full"),
        {"logit_bytes": PIECES}),
    # Dettmers et al. 2023, arXiv 2305.14314: LLaMA 65B in 4 bits on one card of 48 GB, adapters of
    # rank 64 on every matrix, sequences of 512, micro-batch 1, full recomputation; the optimizer's
    # states in pages of the host.
    Run("QLoRA of LLaMA 65B on one GPU", decoder(65.2, 80, 8192, 64, 22_016, 32_000), CARD_48,
        alone(task="qlora", lora_rank=64, seq_len=512, recompute="full",
              cpu_offload=True)),
]  # fmt: skip


BY_NAME = {run.name: run for run in RUNS}

MIXTRAL = ModelShape(
    name="Mixtral-8x7B", total_params=46.703e9, active_params=12.88e9,
    embedding_params=2 * 32_000 * 4096.0, layers=32, hidden=4096, heads=32, kv_heads=8,
    head_dim=128, ffn=14_336, vocab=32_000, experts=8, experts_per_token=2, expert_ffn=14_336,
)  # fmt: skip
QWEN25_32B = decoder(32.764, 64, 5120, 40, 27_648, 152_064, 8)
LLAMA1_7B = decoder(6.738, 32, 4096, 32, 11_008, 32_000)
TOO_LARGE = [
    # stanford_alpaca, issues 56 and 322: full fine-tuning of 7B with Adam on one A100 80 GB.
    Run("7B in full on one card", LLAMA1_7B, A100_80,
        alone(task="finetune", seq_len=512, recompute="full")),
    # LLaMA-Factory, issue 4559: QLoRA of 70B with a copy on each card of 24 GB.
    Run("QLoRA of 70B on 24 GB each", LLAMA3_70B, 22.5,
        TrainingPlan(gpus=4, stack="other", task="qlora", seq_len=512, recompute="full")),
    # LitGPT, issue 242: LoRA of 7B in 16 bits on a card of 16 GB.
    Run("LoRA of 7B on 16 GB", LLAMA2_7B, 15.0,
        alone(task="lora", lora_rank=8, seq_len=512, recompute="full", master_weights=False)),
    # LLaVA, issue 978: Mixtral-8x7B with ZeRO-2 on H800 of 80 GB; ZeRO-3 runs.
    Run("Mixtral with ZeRO-2", MIXTRAL, H100_80,
        TrainingPlan(gpus=8, stack="deepspeed", zero_stage=2, task="finetune", seq_len=2048,
                     recompute="full")),
    # simplescaling/s1, issue 25: 32B on 16 H100 ran out of memory at long sequences, by its
    # activations. The length is not stated: 20,000 tokens assumed, nothing computed again.
    Run("s1 32B at long sequences", QWEN25_32B, H100_80,
        sharded(16, task="finetune", seq_len=20_000, recompute="none")),
    # huggingface/blog 2245: 300 GB for 70B in full is folklore; four cards of 80 GB hold 320.
    Run("70B in full on four cards", LLAMA3_70B, A100_80,
        sharded(4, task="finetune", seq_len=2048, recompute="full")),
    # Hugging Face's run of Llama 2 70B on 16 A100: half of them can't hold its states.
    Run("Llama 2 70B on eight cards", LLAMA2_70B, A100_80,
        sharded(8, task="finetune", seq_len=2048, recompute="full")),
]  # fmt: skip


def total(run: Run, gpus: int | None = None) -> MemoryBreakdown:
    plan = run.plan if gpus is None else replace(run.plan, gpus=gpus)
    return memory_of_plans(run.shape, plan, **{**run.more, "schedule": SCHEDULES[run.schedule]})


@pytest.mark.parametrize("run", RUNS, ids=[r.name for r in RUNS])
def test_a_published_run_fits_where_it_was_run(run: Run) -> None:
    memory = total(run)
    assert fits(memory.total, run.card_gib).all(), as_items(memory)


@pytest.mark.parametrize("run", TOO_LARGE, ids=[r.name for r in TOO_LARGE])
def test_a_run_that_did_not_fit_is_refused(run: Run) -> None:
    memory = total(run)
    assert not fits(memory.total, run.card_gib).any(), as_items(memory)


# Of each run: GPUs that its states alone fill, by hand. 16 bytes a parameter are spread by FSDP;
# Megatron-type code keeps 6 on each model-parallel rank and spreads 12; plain data parallelism
# keeps all 18. In gigabytes of the card (GiB times 1.0737).
FEWEST = [
    ("Korthikanti 22B", 22.0 * 18 / 85.9),
    ("Korthikanti 175B", 174.6 * 18 / 85.9),
    ("Korthikanti 530B", 529.6 * 18 / 85.9),
    ("Korthikanti 1T", 1008.0 * 18 / 85.9),
    ("MPT-7B", 6.649 * 16 / 42.9),
    ("MPT-13B", 12.853 * 16 / 42.9),
    ("MPT-30B", 29.975 * 16 / 85.5),
    ("MPT-70B", 64.862 * 16 / 85.5),
    ("torchtitan 8B", 8.03 * 16 / 102.0),
    ("Llama 2 70B fine-tuned on 16", 68.977 * 16 / 85.9),
    ("OLMo-7B", 6.888 * 16 / 42.9),
    ("TinyLlama 1.1B", 1.1 * 16 / 42.9),
    ("Nemotron-4 340B", 341.0 * 6 / 85.5),
    ("BLOOM 176B", 176.25 * 8 / 85.9),
]


@pytest.mark.parametrize(("name", "states_fill"), FEWEST, ids=[n for n, _ in FEWEST])
def test_the_fewest_servers_lie_between_the_states_alone_and_what_was_run(
    name: str, states_fill: float
) -> None:
    run = BY_NAME[name]
    step = math.lcm(8, run.plan.model_parallel)
    counts = range(step, run.plan.gpus + 1, step)
    fewest = next(n for n in counts if fits(total(run, n).total, run.card_gib).all())
    assert states_fill < fewest <= run.plan.gpus


# Cases where the published count is the smallest possible: half of it can't hold the states.
@pytest.mark.parametrize(
    "name",
    ["Korthikanti 22B", "Korthikanti 175B", "Korthikanti 530B", "Korthikanti 1T", "MPT-13B",
     "Llama 2 70B fine-tuned on 16"],
)  # fmt: skip
def test_the_fewest_servers_are_those_of_the_run(name: str) -> None:
    run = BY_NAME[name]
    step = math.lcm(8, run.plan.model_parallel)
    counts = range(step, run.plan.gpus + 1, step)
    fewest = next(n for n in counts if fits(total(run, n).total, run.card_gib).all())
    assert fewest == run.plan.gpus
