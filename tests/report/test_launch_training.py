"""The kit's training programs really train: small models, two processes, on the CPU.

PyTorch is no part of the lock, so these skip where it is absent. To run them, install the kit's
requirements beside the lock's packages.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.report.launch import launch_files
from tests.report.launch_sample import CASES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)
TORCHRUN = Path(sys.executable).parent / "torchrun"
SEQ, VOCAB = 32, 100
SMALL = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128,
}  # fmt: skip
# Two processes, two sequences each, two parts: the batch is 8.
SIZES: dict[str, Any] = {
    "gpus": 2, "data_parallel": 2, "micro_batch": 2, "accumulation": 2, "global_batch": 8,
    "seq_len": SEQ, "total_steps": 12, "learning_rate": 1e-2, "min_learning_rate": 1e-3,
    "warmup_steps": 2, "log_every_steps": 1,
}  # fmt: skip


def make(name: str, folder: Path, **changes: Any) -> Path:
    """A kit cut down to a model of a few thousand parameters, with data and weights."""
    files = launch_files(*CASES[name])
    settings = json.loads(files["train.json"]) | SIZES
    settings["shard_size"] = 2
    settings["model"] = str(weights(folder, changes.pop("tied", False)))
    files["train.json"] = json.dumps(settings | changes)
    if "deepspeed.json" in files:
        zero = json.loads(files["deepspeed.json"])
        zero |= {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
                 "gradient_accumulation_steps": 2}  # fmt: skip
        files["deepspeed.json"] = json.dumps(zero)
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def weights(folder: Path, tied: bool) -> Path:
    """A small Llama with random weights, and 40,000 tokens that repeat."""
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SMALL, tie_word_embeddings=tied))
    model.save_pretrained(folder / "weights")
    data = folder / "data"
    data.mkdir()
    ids = np.tile(np.arange(VOCAB, dtype=np.uint16), 400)
    ids.tofile(data / "tokens.bin")
    about = {"dtype": "uint16", "vocab": VOCAB, "tokens": len(ids)}
    (data / "tokens.json").write_text(json.dumps(about))
    return folder / "weights"


def start(folder: Path, *program: str, **env: str) -> str:
    """What a run says, with two processes."""
    (folder / "saved").mkdir(exist_ok=True)
    done = subprocess.run(
        [str(TORCHRUN), "--standalone", "--nproc-per-node=2", *program],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "DATASET": str(folder / "data"),
             "CHECKPOINT_DIR": str(folder / "saved"), "DS_ACCELERATOR": "cpu", **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def steps(text: str) -> dict[int, tuple[float, float]]:
    """Loss and gradient norm by step."""
    found = re.findall(r"step (\d+)/\d+ loss ([\d.]+) norm ([\d.]+)", text)
    return {int(step): (float(loss), float(norm)) for step, loss, norm in found}


def first_loss(folder: Path) -> float:
    """Loss of the first step as the published library computes it, without any of the kit."""
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder / "weights")
    ids = np.fromfile(folder / "data" / "tokens.bin", dtype=np.uint16).astype(np.int64)
    # 40,000 tokens are 1,250 sequences; a stride of 0.618 of them that shares no divisor: 773.
    order = [i * 773 % 1250 for i in range(8)]
    batch = torch.tensor(np.stack([ids[j * SEQ : (j + 1) * SEQ] for j in order]))
    with torch.no_grad():
        return float(model(input_ids=batch, labels=batch).loss)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("fsdp", {}),
        ("fsdp", {"tied": True, "recompute": False}),
        ("hybrid sharding", {"shard_size": 1}),
        ("fine-tuning", {}),
        ("fine-tuning", {"tied": True}),
        ("lora", {}),
        ("8-bit adam", {}),
        ("qlora", {}),
        ("qlora, sharded", {}),
        ("qlora, sharded", {"recompute": False, "tied": True}),
        ("offload", {}),
    ],
    ids=lambda v: v if isinstance(v, str) else "-".join(v) or "as it is",
)
def test_training_lowers_the_loss_and_leaves_a_checkpoint(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    for package, case in (("peft", "lora"), ("bitsandbytes", "qlora"), ("torchao", "8-bit adam"),
                          ("deepspeed", "offload")):  # fmt: skip
        if case in name:
            pytest.importorskip(package)
    folder = make(name, tmp_path, **changes)
    program = "train_deepspeed.py" if name == "offload" else "train.py"
    seen = steps(start(folder, program, "train.json"))
    assert sorted(seen) == list(range(1, 13))
    assert seen[12][0] < seen[1][0] - (0.1 if "lora" in name else 1.0)
    assert (folder / "saved" / "latest_step").read_text() == "12\n"
    if name in ("fine-tuning", "offload"):
        # The published weights are there, and so are the data in their order.
        assert seen[1][0] == pytest.approx(first_loss(folder), abs=0.02)


def test_sharded_4_bit_weights_are_those_of_the_whole_model(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    folder = make("qlora, sharded", tmp_path)
    seen = steps(start(folder, "train.py", "train.json"))
    # The published library alone, one process, nothing sharded, bytes as its default store.
    model = AutoModelForCausalLM.from_pretrained(
        folder / "weights", dtype=torch.bfloat16, device_map={"": "cpu"},
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        ),
    )  # fmt: skip
    model.train()
    ids = np.fromfile(folder / "data" / "tokens.bin", dtype=np.uint16).astype(np.int64)
    batch = torch.tensor(np.stack([ids[i * 773 % 1250 * SEQ :][:SEQ] for i in range(8)]))
    with torch.no_grad():
        loss = float(model(input_ids=batch, labels=batch).loss)
    # New adapters add nothing, so the first step sees the frozen weights alone.
    assert seen[1][0] == pytest.approx(loss, abs=0.01)


def test_every_process_keeps_its_part_of_4_bit_weights_alone(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    folder = make("qlora, sharded", tmp_path)
    (folder / "look.py").write_text(
        "import json, os, train\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "settings = json.load(open('train.json'))\n"
        "model = train.quantized_shards(settings, train.model_config(settings),\n"
        "    train.torch.device('cpu'), dist.get_rank())\n"
        "own = sum(p.to_local().nbytes for n, p in model.named_parameters() if 'lora' not in n)\n"
        "at_work = {p.dtype for p in model.parameters() if not p.requires_grad}\n"
        "print('bytes', own, at_work)\n"
        "dist.destroy_process_group()\n"
    )
    told = start(folder, "look.py")
    # A layer: q and o 64 x 64, k and v 64 x 32, three of 64 x 128: 36,864 weights of half a byte;
    # norms 2 x 64 of two bytes. Two layers 37,376; embedding and head 2 x 128 x 64 and the last
    # norm in two bytes, 32,896. Together 70,272: 35,136 for each of two.
    assert told.count("bytes 35136 {torch.bfloat16}") == 2


@pytest.mark.parametrize("name", ["fsdp", "qlora, sharded"])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    if "qlora" in name:
        pytest.importorskip("bitsandbytes")
    whole = make(name, tmp_path / "whole")
    at_once = steps(start(whole, "train.py", "train.json"))
    parts = make(name, tmp_path / "parts")
    before = steps(start(parts, "train.py", "train.json", STOP_AT="1"))  # long past: after a step
    assert sorted(before) == [1]
    after = steps(start(parts, "train.py", "train.json"))
    assert sorted(after) == list(range(2, 13))
    for step, (loss, norm) in (before | after).items():
        assert (loss, norm) == pytest.approx(at_once[step], rel=1e-3)


def test_old_checkpoints_go_and_the_newest_stay(tmp_path: Path) -> None:
    folder = make("fsdp", tmp_path)
    saves = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps(saves | {"checkpoint_minutes": 1e-6}))
    start(folder, "train.py", "train.json")
    kept = sorted(p.name for p in (folder / "saved").glob("step-*"))
    assert kept == [f"step-{n:09d}" for n in (10, 11, 12)]


def test_a_checkpoint_that_lost_files_is_passed_over(tmp_path: Path) -> None:
    folder = make("fsdp", tmp_path)
    saves = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps(saves | {"checkpoint_minutes": 1e-6}))
    start(folder, "train.py", "train.json")
    # The machines were gone before the second rank's part had reached the bucket.
    next((folder / "saved" / "step-000000012").glob("__1_*")).unlink()
    told = start(folder, "train.py", "train.json")
    assert "step 12 is not whole: going on from step 11" in told
    assert sorted(steps(told)) == [12]
    for part in (folder / "saved").glob("step-*/__1_*"):
        part.unlink()
    with pytest.raises(AssertionError, match="holds no whole checkpoint"):
        start(folder, "train.py", "train.json")


@pytest.mark.parametrize("name", ["fsdp", "lora", "qlora, sharded"])
def test_a_checkpoint_becomes_an_ordinary_model(name: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    if "lora" in name:
        pytest.importorskip("peft")
    if "qlora" in name:
        pytest.importorskip("bitsandbytes")
    folder = make(name, tmp_path)
    last = steps(start(folder, "train.py", "train.json"))[12][0]
    env = {**os.environ, "DATASET": str(folder / "data"), "CHECKPOINT_DIR": str(folder / "saved")}
    subprocess.run(
        [sys.executable, "export_model.py", "train.json", str(folder / "out")],
        cwd=folder, env=env, check=True, capture_output=True,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_pretrained(folder / "out", dtype=torch.float32)
    ids = torch.arange(VOCAB)[None, :SEQ]
    with torch.no_grad():
        loss = float(model(input_ids=ids, labels=ids).loss)
    # One step further, on one sequence of the same kind.
    assert loss == pytest.approx(last, abs=0.4)


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    folder = make("fsdp", tmp_path, gpus=4)
    with pytest.raises(AssertionError, match="the plan is for 4 GPUs, but 2 processes"):
        start(folder, "train.py", "train.json")


def test_the_network_is_measured_and_judged(tmp_path: Path) -> None:
    folder = make("fsdp", tmp_path)
    text = start(folder, "check_network.py")
    assert re.search(r"all-reduce of 2 MiB: [\d.]+ GB/s$", text, re.M)
    with pytest.raises(AssertionError, match="slower than the plan assumes"):
        start(folder, "check_network.py", EXPECTED_BUS_GB_PER_S="1000000")


def test_every_sequence_comes_once_before_any_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make("fsdp", tmp_path)
    code = (
        "from pathlib import Path; from common import Tokens; t = Tokens(Path('data'), 32); "
        "starts = [(i * t.stride) % t.count for i in range(t.count)]; "
        "assert sorted(starts) == list(range(1250)), t.stride; print(t.stride)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout == "773\n"


def tokenized(folder: Path) -> None:
    """A tokenizer of three words, and two documents."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"</s>": 0, "one": 1, "two": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="two"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>").save_pretrained(
        folder / "tokenizer"
    )
    (folder / "text.jsonl").write_text('{"text": "one two"}\n\n{"text": "two one one"}\n')


def test_text_becomes_tokens(tmp_path: Path) -> None:
    import numpy as np

    folder = make("fsdp", tmp_path)
    tokenized(folder)
    subprocess.run(
        [sys.executable, "prepare_data.py", "tokenizer", "out", "text.jsonl"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    ids = np.fromfile(folder / "out" / "tokens.bin", dtype=np.uint16).tolist()
    assert ids == [1, 2, 0, 2, 1, 1, 0]
    about = json.loads((folder / "out" / "tokens.json").read_text())
    assert about == {"dtype": "uint16", "vocab": 3, "tokens": 7}


def test_text_becomes_an_indexed_data_set(tmp_path: Path) -> None:
    megatron = pytest.importorskip("megatron.core.datasets.indexed_dataset")

    for name, text in launch_files(*CASES["adapters, split"]).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    tokenized(tmp_path)
    subprocess.run(
        [sys.executable, "prepare_indexed.py", "tokenizer", "data/tune", "text.jsonl"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    data = megatron.IndexedDataset(str(tmp_path / "data" / "tune"))
    assert [list(data[i]) for i in range(len(data))] == [[1, 2, 0], [2, 1, 1, 0]]
