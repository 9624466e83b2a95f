"""One replica by load, on GPUs and on CPU servers, against simulation and published runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from engine.estimate.serving import serving_capacity
from engine.estimate.serving_points import (
    CpuBox,
    Load,
    Targets,
    at_rate,
    cpu_capacity,
    cpu_replica,
    curve,
    gpu_capacity,
    gpu_replica,
    memory_items,
    room,
    simulate,
)
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.simulate_serving import simulate_replica
from tests.estimate.serving_asks import CATALOGUE, CHAT, USUAL

# --- one replica


def test_the_curve_passes_through_the_capacity() -> None:
    acc = CATALOGUE.accelerators["h100-sxm-80gb"]
    for params, tp, pp in ((8.0, 1, 1), (70.0, 4, 1), (405.0, 8, 2)):
        shape = shape_from_size(params)
        capacity = serving_capacity(
            shape, acc, tp, CHAT.input_tokens, CHAT.output_tokens, ttft_target_s=2.0,
            tpot_target_s=0.1, pp=pp,
        )  # fmt: skip
        found = curve(gpu_replica(shape, acc, tp, pp, False, 16.0, 2.0), CHAT, 0.95)
        seen = at_rate(found, float(capacity.requests_per_s))
        assert seen.ttft_target_s == pytest.approx(float(capacity.ttft_s), rel=1e-6)
        assert seen.tpot_mean_s == pytest.approx(float(capacity.tpot_s), rel=1e-6)
        assert seen.batch == pytest.approx(float(capacity.batch), rel=1e-6)


def test_latencies_grow_with_the_load_and_percentiles_are_in_order() -> None:
    found = curve(
        gpu_replica(shape_from_size(8.0), CATALOGUE.accelerators["l40s"], 1, 1, False, 16, 2),
        CHAT, 0.95,
    )  # fmt: skip
    for column in (found.rate, found.ttft_mean, found.tpot_mean):
        assert np.all(np.diff(column) > -1e-12)
    assert np.all(found.ttft_mean <= found.ttft_target)
    assert np.all(found.ttft_target <= found.ttft_p99)
    assert np.all(found.tpot_mean <= found.tpot_p99)
    beyond = at_rate(found, float(found.rate[-1]) * 2)
    assert math.isinf(beyond.ttft_mean_s)


@pytest.mark.parametrize("share", [0.03, 0.3, 0.6, 0.85])
@pytest.mark.parametrize(("params", "sku", "tp"), [(8.0, "l40s", 1), (70.0, "h100-sxm-80gb", 4)])
def test_the_closed_form_agrees_with_the_simulation(
    params: float, sku: str, tp: int, share: float
) -> None:
    shape, acc = shape_from_size(params), CATALOGUE.accelerators[sku]
    replica = gpu_replica(shape, acc, tp, 1, False, 16.0, 2.0)
    most = gpu_capacity(shape, acc, tp, 1, False, 16.0, 2.0, "vllm-2025", CHAT, USUAL)
    rate = share * float(most.requests_per_s)
    seen = simulate(replica, CHAT, rate, requests=20_000)
    told = at_rate(curve(replica, CHAT, 0.95), rate)
    assert told.tpot_mean_s == pytest.approx(seen.tpot_mean_s, rel=0.05)
    assert told.ttft_mean_s == pytest.approx(seen.ttft_mean_s, rel=0.12)
    assert told.ttft_target_s == pytest.approx(seen.ttft_p95_s, rel=0.12)
    # The slowest answer in a hundred is slower than the slowest in twenty, and not by much.
    assert seen.tpot_p95_s <= told.tpot_p99_s * 1.02
    assert told.tpot_p99_s <= seen.tpot_p95_s * 1.4


def test_the_simulation_is_that_of_the_replica_and_the_prefix_cache_helps() -> None:
    shape, acc = shape_from_size(8.0), CATALOGUE.accelerators["l40s"]
    replica = gpu_replica(shape, acc, 1, 1, False, 16.0, 2.0)
    assert simulate(replica, CHAT, 2.0, requests=2000) == simulate_replica(
        shape, acc, 1, 1000, 300, rate=2.0, requests=2000
    )
    hit = simulate(replica, replace(CHAT, prefix_hit=0.8), 2.0, requests=2000)
    assert hit.ttft_mean_s < simulate(replica, CHAT, 2.0, requests=2000).ttft_mean_s * 0.7


def test_memory_is_itemised_to_the_last_byte() -> None:
    # 70.0e9 × 2 bytes over 4 GPUs are 32.6 GiB; the cache of a token is 2·80·8·128·2 = 327,680
    # bytes, of 1,300 tokens 0.397 GiB, over 4 GPUs 0.099.
    shape, acc = shape_from_size(70.0), CATALOGUE.accelerators["h100-sxm-80gb"]
    replica = gpu_replica(shape, acc, 4, 1, False, 16.0, 2.0)
    weights, cache, work, engine = memory_items(replica, CHAT, 100.0)
    assert weights.gib == pytest.approx(32.6, rel=0.15)  # with what engines add to weights
    assert cache.gib == pytest.approx(9.92, rel=0.10)
    assert work.gib > 0
    assert engine.gib > 0
    most = gpu_capacity(shape, acc, 4, 1, False, 16.0, 2.0, "vllm-2025", CHAT, USUAL)
    parts = memory_items(replica, CHAT, float(most.batch))
    assert math.fsum(p.gib for p in parts) == pytest.approx(float(most.memory_gib), rel=1e-9)


# --- CPU servers


def test_a_published_cpu_run_lies_in_the_band() -> None:
    # MLPerf v5.1: two Xeon 6980P, Llama-3.1-8B in 4 bits, 778 in and 73 out, answer 451 tokens/s
    # inside 2 s to the first token and 100 ms per token, at the 99th percentile.
    server = CATALOGUE.cpu_servers["xeon-6980p-2s"]
    box = CpuBox(server.vcpu, 1024.0, server.memory_bandwidth_gb_per_s, server.peak_bf16_gflops)
    found = cpu_capacity(
        cpu_replica(shape_from_size(8.03), box, 4.0, 2.0), Load(778.0, 73.0),
        Targets(2.0, 0.1, 0.99),
    )  # fmt: skip
    assert found.requests.low * 73 < 451 < found.requests.high * 73
    assert found.requests.high / max(found.requests.low, 1e-9) > 2.5
    assert not found.calibrated


def test_one_gpu_serves_an_8b_model_an_order_better_than_the_best_cpu_node() -> None:
    # MLPerf v5.1 served: 451 tokens/s of the node against 5,103 of an H100 in 8 bits: 0.09.
    server = CATALOGUE.cpu_servers["xeon-6980p-2s"]
    box = CpuBox(server.vcpu, 1024.0, server.memory_bandwidth_gb_per_s, server.peak_bf16_gflops)
    load, targets = Load(778.0, 73.0), Targets(2.0, 0.1, 0.99)
    shape = shape_from_size(8.03)
    node = cpu_capacity(cpu_replica(shape, box, 4.0, 2.0), load, targets)
    acc = CATALOGUE.accelerators["h100-sxm-80gb"]
    one = gpu_capacity(shape, acc, 1, 1, False, 8.0, 2.0, "vllm-2025", load, targets)
    ratio = float(node.requests_per_s) / float(one.requests_per_s)
    assert 0.09 / 3 < ratio < 0.09 * 3


def test_a_server_without_room_carries_nothing() -> None:
    replica = cpu_replica(shape_from_size(70.0), CpuBox(16.0, 64.0), 16.0, 2.0)
    assert room(replica, CHAT) < 1
    found = cpu_capacity(replica, CHAT, USUAL)
    assert (found.requests_per_s, found.fits, found.floor) == (0.0, False, "memory")
