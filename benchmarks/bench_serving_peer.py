"""Serving against llm-analysis: accuracy and time of both on the same published rows, in one run.

Run it alone with `python -m benchmarks.bench_serving_peer`. llm-analysis is no dependency: `make
bench` installs it beside the environment. It knows dense models, one load and no queue, so the rows
are those: time per token with its batch the number of users, and throughput of static batches.
Ours come from fits that have not seen the row's family; llm-analysis runs at the share of peak, of
two, that suits it better. Rows that it can't represent are left out for both.
"""

from __future__ import annotations

import csv
import logging
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from engine.calibrate.serving import residuals
from engine.calibrate.serving_fit import fit
from engine.calibrate.serving_protocols import predict
from engine.calibrate.serving_rows import Reading, read, table_of

NAME = "serving against llm-analysis, same rows"
ROWS = Path(__file__).resolve().parents[1] / "data" / "measured_serving.csv"
SHARES = (0.5, 1.0)  # of peak, that llm-analysis is run at
FAMILIES = (
    "sweep/Llama-3.1-70B", "sweep/Qwen3-32B", "Argonne/vLLM/H100", "Argonne/TensorRT-LLM/H100",
    "Argonne/vLLM/A100-40G",
)  # fmt: skip


def _rows() -> tuple[list[Reading], list[float]]:
    """Rows that can be predicted, and the width of each model's feed-forward layers."""
    readings, widths = [], []
    with ROWS.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            reading = read(cells)
            if not reading.skipped:
                readings.append(reading)
                widths.append(float(cells.get("ffn") or "nan"))
    return readings, widths


def _theirs(
    analysis: Any, config: Any, r: Reading, ffn: float, share: float
) -> tuple[float, float] | None:
    """Seconds per token and tokens/s by llm-analysis; None for what it can't represent."""
    net, hw, plan = r.network, r.hardware, r.plan
    if net is None or hw is None or plan is None:
        return None
    whole = r.users / r.replicas
    if float(net.experts) > 1 or not ffn > 0 or float(plan.pp) != 1 or whole != int(whole):
        return None
    hidden, layers, vocab = int(net.hidden), int(net.layers), int(net.vocab)
    heads = int(float(net.score_width) / 256.0)  # of 128 elements, in keys and in values
    if heads < 1 or hidden % heads:
        return None
    bits = 16 if float(plan.weight_bytes) >= 1.9 else 8 if float(plan.weight_bytes) >= 0.9 else 4
    tera, giga = 1e12, 1e9
    gpu = config.GPUConfig(
        "row", float(hw.memory) / 1024**3, float(hw.bandwidth) / giga, float(hw.link) / giga, 8e-6,
        float(hw.peak16) / tera, float(hw.peak) / tera, float(hw.peak) / tera,
    )  # fmt: skip
    try:
        model = config.ModelConfig(
            "row", layers, heads, hidden, vocab, ffn_embed_dim=int(ffn),
            expansion_ratio=ffn / hidden, num_key_value_heads=int(net.cache_shards),
            max_seq_len=int(r.prompt + r.answer),
        )  # fmt: skip
        tool = analysis.LLMAnalysis(
            model, gpu, config.DtypeConfig(weight_bits=bits, activation_bits=max(bits, 8)),
            config.ParallelismConfig(int(plan.tp)), flops_efficiency=share,
            hbm_memory_efficiency=analysis.HBM_MEMORY_EFFICIENCY,
        )  # fmt: skip
        told = tool.inference(
            batch_size_per_gpu=int(whole), seq_len=int(r.prompt),
            num_tokens_to_generate=int(r.answer), kv_cache_dtype_bytes=int(plan.kv_bytes),
        )  # fmt: skip
    except (AssertionError, ValueError, ZeroDivisionError, TypeError):
        return None
    return float(told["decode_latency"]), r.users * r.answer / float(told["total_latency"])


def run() -> None:
    """Print the errors of both by source, and the time of one prediction."""
    logging.disable(logging.WARNING)
    try:
        from llm_analysis import analysis, config  # type: ignore[import-not-found]
    except ImportError:
        print("  llm-analysis is not installed: no comparison (published: 0.4 ms, 38 to 46% off)")
        return
    finally:
        logging.disable(logging.NOTSET)
    readings, widths = _rows()
    t = table_of(readings)
    full = fit(t)
    start = time.perf_counter()
    predict(t, full.efficiencies(t))
    each = (time.perf_counter() - start) / len(t)
    logging.disable(logging.WARNING)
    spent, asked = 0.0, 0
    for family in FAMILIES:
        out = np.flatnonzero(t.family == family)
        unseen = t.take(out)
        mine = residuals(
            unseen, fit(t.take(np.flatnonzero(t.family != family)), full, evaluations=12)
        )
        token = family.startswith("sweep/")
        errors = mine["itl_closed" if token else "rate_static"]
        ours: list[float] = []
        others: list[list[float]] = [[] for _ in SHARES]
        for place, i in enumerate(out):
            measured = float(t.itl[i] if token else t.tokens_per_s[i])
            if not (math.isfinite(errors[place]) and measured > 0):
                continue
            began = time.perf_counter()
            told = [_theirs(analysis, config, readings[i], widths[i], s) for s in SHARES]
            spent, asked = spent + time.perf_counter() - began, asked + len(SHARES)
            if any(x is None for x in told):
                continue
            ours.append(abs(math.expm1(errors[place])))
            for errors_of, x in zip(others, told, strict=True):
                assert x is not None
                errors_of.append(abs(x[0 if token else 1] / measured - 1.0))
        if not ours:
            continue
        at, best = min(zip(SHARES, others, strict=True), key=lambda pair: np.median(pair[1]))
        what = "time per token" if token else "throughput"
        print(
            f"  {family}, {what}, {len(ours)} rows: median error {np.median(ours):.1%} "
            f"({np.quantile(ours, 0.9):.0%} at the 90th percentile) against {np.median(best):.1%} "
            f"({np.quantile(best, 0.9):.0%}) of llm-analysis at {at:g} of peak"
        )
    logging.disable(logging.NOTSET)
    theirs = spent / max(asked, 1)
    print(f"  time: {each * 1e6:.1f} against {theirs * 1e6:.0f} us, ratio {theirs / each:.0f}")


if __name__ == "__main__":
    print(NAME)
    run()
