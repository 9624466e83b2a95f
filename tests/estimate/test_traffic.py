"""Traffic over the day, imported logs, and cold starts: hand-worked figures."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ImportFileError, InputError
from engine.estimate.cold_start import (
    WAYS,
    article_budget_s,
    article_range,
    cold_start,
    on_share,
    scale_to_zero,
    warm_replicas,
)
from engine.estimate.traffic import Traffic, shapes, sharpened, traffic_of
from engine.estimate.traffic_log import read_log

HALF_DAY = [1.0] * 12 + [3.0] * 12


def test_the_shipped_shapes_have_a_mean_of_one() -> None:
    for title, profile in shapes().values():
        assert title
        assert len(profile) == 24
        assert math.fsum(profile) / 24 == pytest.approx(1.0)


def test_a_shape_keeps_the_mean_rate() -> None:
    traffic = traffic_of(10.0, HALF_DAY)
    assert traffic.mean == pytest.approx(10.0)
    # 3 over a mean of 2: 15 at the peak, half as much again as the mean.
    assert traffic.peak == pytest.approx(15.0)
    assert traffic.peak_to_mean == pytest.approx(1.5)
    assert traffic.utilization() == pytest.approx(1 / 1.5)
    assert traffic.busiest_hour == 12
    assert traffic.requests_per_day == pytest.approx(864_000)


def test_a_peak_factor_sharpens_the_shape() -> None:
    # Hours 1 and 3 to the power p: peak over mean is 2·3^p/(1 + 3^p) = 1.8 at 3^p = 9, p = 2.
    sharp = sharpened(np.array(HALF_DAY), 1.8)
    assert sharp[:12] == pytest.approx(0.2)
    assert sharp[12:] == pytest.approx(1.8)


def test_what_hours_cannot_show_is_a_burst_within_the_hour() -> None:
    flat = traffic_of(4.0, "even", peak_factor=3.0)
    assert flat.hourly == pytest.approx([4.0] * 24)
    assert flat.burst == pytest.approx(3.0)
    # Six hours at the top can't hold more than four times the mean.
    night = traffic_of(4.0, "night", peak_factor=5.0)
    assert max(night.hourly) == pytest.approx(16.0, rel=1e-3)
    assert night.peak == pytest.approx(20.0)


def test_hours_that_were_told_stay_as_they_are() -> None:
    told = traffic_of(4.0, HALF_DAY, peak_factor=2.0)
    assert told.hourly == pytest.approx([2.0] * 12 + [6.0] * 12)
    assert told.burst == pytest.approx(2.0 / 1.5)
    assert told.peak == pytest.approx(8.0)


@given(st.floats(0.01, 1e5), st.sampled_from(sorted(shapes())), st.floats(1.0, 50.0))
def test_mean_and_peak_are_those_asked_for(mean: float, shape: str, factor: float) -> None:
    traffic = traffic_of(mean, shape, peak_factor=factor)
    assert traffic.mean == pytest.approx(mean)
    assert traffic.peak_to_mean == pytest.approx(factor, rel=1e-6)
    assert min(traffic.hourly) >= 0


def test_no_traffic_is_traffic_too() -> None:
    nothing = traffic_of(0.0, "office", peak_factor=4)
    assert (nothing.mean, nothing.peak, nothing.utilization()) == (0, 0, 0)
    assert nothing.peak_to_mean == 1


@pytest.mark.parametrize(
    ("mean", "shape", "factor", "where"),
    [
        (-1, "even", None, "rate"), (math.nan, "even", None, "rate"), (1, "flat", None, "shape"),
        (1, [1, 2], None, "hourly"), (1, [0] * 24, None, "hourly"), (1, [-1] * 24, None, "hourly"),
        (1, "even", 0.5, "peak_factor"),
    ],
)  # fmt: skip
def test_bad_traffic_is_told(mean: float, shape: object, factor: float | None, where: str) -> None:
    with pytest.raises(InputError) as told:
        traffic_of(mean, shape, peak_factor=factor)  # type: ignore[arg-type]
    assert told.value.where == where


# --- logs

START = datetime(2026, 11, 2)  # midnight of a Monday


def _log(days: int, form: str) -> str:
    """60 requests in each hour before noon, 180 after: 2 a minute on average."""
    lines = []
    for hour in range(24 * days):
        count = 60 if hour % 24 < 12 else 180
        for i in range(count):
            moment = START + timedelta(hours=hour, seconds=i * 3600 / count)
            lines.append(moment.strftime(form))
    return "\n".join(lines)


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S,%f GET /v1/chat 200",
        '10.0.0.1 - - [%d/%b/%Y:%H:%M:%S +0100] "POST /" 200', "%Y-%m-%dT%H:%M:%SZ",
    ],
)  # fmt: skip
def test_a_log_tells_mean_and_day(form: str) -> None:
    log = read_log(_log(7, form))
    assert log.requests == 7 * 12 * 240
    # 2,880 a day is one every 30 s.
    assert log.mean_per_s == pytest.approx(2880 / 86_400, rel=1e-3)
    assert log.days == pytest.approx(7, rel=1e-3)
    assert log.hourly[3] == pytest.approx(60 / 3600, rel=0.02)
    assert log.hourly[20] == pytest.approx(180 / 3600, rel=0.02)
    assert log.peak_to_mean == pytest.approx(1.5, rel=0.05)
    # Regular requests: no variation within an hour.
    assert log.arrival_cv2 == pytest.approx(0, abs=0.02)
    assert log.notes == ()


def test_quiet_nights_at_the_ends_of_a_log_are_nights_all_the_same() -> None:
    """100 an hour from 6 to 22 of seven days: 1,600 a day, though the log covers 6.7 days only."""
    stamps = [
        START + timedelta(days=d, hours=h, seconds=36 * i + 18)
        for d in range(7)
        for h in range(6, 22)
        for i in range(100)
    ]
    log = read_log("\n".join(s.isoformat() for s in stamps))
    assert log.mean_per_s == pytest.approx(1600 / 86_400, rel=0.005)
    assert log.hourly[2] == 0
    assert log.hourly[12] == pytest.approx(100 / 3600, rel=0.005)
    assert log.peak_to_mean == pytest.approx(24 / 16, rel=0.03)
    # As regular as a clock by day: the night is no gap of the morning.
    assert log.arrival_cv2 == pytest.approx(0, abs=0.001)


def test_a_log_as_windows_writes_it_is_read() -> None:
    text = _log(1, "%Y-%m-%dT%H:%M:%S")
    assert read_log(text.encode("utf-16")) == read_log(text)


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_a_log_in_seconds_since_1970_of_any_unit(unit: int) -> None:
    stamps = [1_793_577_600 + 10 * i for i in range(1000)]
    log = read_log("\n".join(str(s * unit) for s in stamps))
    assert log.mean_per_s == pytest.approx(0.1, rel=1e-6)


def test_random_requests_vary_like_random_ones() -> None:
    gaps = np.random.default_rng(3).exponential(1.0, 100_000)
    stamps = 1_793_577_600 + np.cumsum(gaps)
    log = read_log("\n".join(f"{s:.4f}" for s in stamps))
    assert log.arrival_cv2 == pytest.approx(1.0, abs=0.03)


def test_lines_without_a_time_are_left_out_and_counted() -> None:
    log = read_log("time,path\n" + _log(7, "%Y-%m-%dT%H:%M:%S,/chat") + "\nnonsense\n\n")
    assert log.skipped == 2
    assert "2 of 20,162 lines hold no time" in log.notes[0]


@pytest.mark.parametrize(
    "data",
    [b"", b"a\nb\n", "\n".join(["2026-11-02T00:00:00"] * 50), b"\xff\xfe" * 100, "x" * 100],
    ids=["empty", "words", "one second", "bytes", "one line"],
)
def test_a_file_that_is_no_log_is_told(data: bytes | str) -> None:
    with pytest.raises(ImportFileError) as told:
        read_log(data, "requests.csv")
    assert told.value.where == "requests.csv"
    assert told.value.right


# --- cold starts


def test_the_chain_of_a_70b_model_takes_the_published_times() -> None:
    # Spheron 2026: 141 GB from a drive in 40 to 45 s, graphs 30 s, first requests 10 s.
    weights, graphs, warmup = cold_start(141.0, 70.0, "warm_machine").stages
    assert 40 <= weights.seconds.likely <= 45
    assert graphs.seconds.likely == pytest.approx(30, rel=0.1)
    assert warmup.seconds.likely == pytest.approx(10, rel=0.05)
    # Graphs take longer for larger models, and are told so.
    assert "whatever" not in graphs.name


def test_a_chain_is_the_sum_of_its_stages_and_grows_with_the_model() -> None:
    for way in WAYS:
        small, large = cold_start(16.0, 8.0, way), cold_start(141.0, 70.0, way)
        for chain in (small, large):
            assert chain.seconds.likely == pytest.approx(
                math.fsum(s.seconds.likely for s in chain.stages)
            )
            assert all(s.seconds.sources and s.as_of for s in chain.stages)
        assert large.seconds.likely > small.seconds.likely


def test_the_articles_range_holds_a_mid_sized_model_on_a_running_machine() -> None:
    said = article_range()
    assert (said.low, said.high) == (15, 45)
    assert said.low < cold_start(16.0, 8.0, "warm_machine").seconds.likely < said.high
    assert article_budget_s() == 0.5
    # Every cold start breaks that budget, the quickest of all ways too.
    assert min(cold_start(4.2, 8.0, way).seconds.likely for way in WAYS) > article_budget_s()


def test_the_share_of_cold_requests_is_that_of_an_exponential_pause() -> None:
    # One request in 300 s on average, switched off after 300 s: e^−1 of them find nobody.
    traffic = traffic_of(1 / 300)
    result = scale_to_zero(traffic, 0.0, idle_timeout_s=300, warm_s=0.2, percentile=0.95)
    assert result.cold_share == pytest.approx(math.exp(-1))
    assert result.on_share == pytest.approx(1 - math.exp(-1))
    assert result.starts_per_day == pytest.approx(86_400 / 300 * math.exp(-1))
    slow = scale_to_zero(traffic, 40.0, idle_timeout_s=300, warm_s=0.2, percentile=0.95)
    assert slow.percentile_is_cold
    assert slow.latency_s == pytest.approx(40.2)


def test_an_engine_takes_longer_for_a_larger_model_wherever_it_starts() -> None:
    # 70B in 16 bits, 140 GB, on RunPod: 2.4 s for the container of 4.2 GB and 8B, 135.8 GB at
    # 3.3 GB/s = 41.15 s, and for 62 further billions 0.29 × 62 = 17.98 s of graphs and
    # 0.08 × 62 = 4.96 s to warm up.
    assert cold_start(140.0, 70.0, "runpod").seconds.likely == pytest.approx(66.49, abs=0.01)
    # A snapshot of the memory has the graphs: 13.8 s and 124 GB at 3.3 GB/s.
    snapshot = cold_start(140.0, 70.0, "modal_snapshot").seconds.likely
    assert snapshot == pytest.approx(13.8 + 124 / 3.3)
    # The model that was measured takes what was measured.
    assert cold_start(4.2, 8.0, "runpod").seconds.likely == pytest.approx(2.4)
    assert cold_start(1.0, 1.0, "replicate").seconds.likely == pytest.approx(7.8)


def test_busy_traffic_meets_no_cold_start() -> None:
    busy = scale_to_zero(traffic_of(10.0), 60.0, idle_timeout_s=300, warm_s=0.2, percentile=0.99)
    assert busy.cold_share < 1e-9
    assert busy.on_share == pytest.approx(1.0)
    assert (busy.latency_s, busy.percentile_is_cold) == (0.2, False)


def test_the_share_of_a_simulated_day_agrees() -> None:
    rate, start, idle = 1 / 200, 60.0, 120.0
    random = np.random.default_rng(5)
    times = np.cumsum(random.exponential(1 / rate, 200_000)).tolist()
    cold = on = begun = 0.0
    until = ready = -1.0  # switched off at `until`, answers from `ready` on
    for t in times:
        if t >= until:
            on += until - begun if until > 0 else 0.0
            begun, ready, cold = t, t + start, cold + 1
        elif t < ready:
            cold += 1
        until = max(t, ready) + idle
    on += until - begun
    found = scale_to_zero(traffic_of(rate), start, idle_timeout_s=idle, warm_s=0.1, percentile=0.95)
    # The pause counts from the last answer and not from the request: a little more is on.
    assert found.cold_share == pytest.approx(cold / len(times), rel=0.25)
    assert found.on_share == pytest.approx(on / times[-1], rel=0.25)


def test_nobody_comes_nothing_is_paid() -> None:
    assert on_share(0.0, 60.0, 300.0) == 0.0
    empty = scale_to_zero(traffic_of(0.0), 60, idle_timeout_s=300, warm_s=0.1, percentile=0.95)
    assert empty.on_share == 0.0


def test_warm_replicas_carry_the_rise_during_a_start() -> None:
    # 36 requests/s more within an hour, 360 s to start: 3.6 more, at 1 each that is 4;
    # a tenth of the peak of 46 is 4.6, so 5.
    hourly = [10.0] * 12 + [46.0] * 12
    assert warm_replicas(Traffic(tuple(hourly)), 360.0, 1.0) == 5
    assert warm_replicas(Traffic(tuple(hourly)), 3600.0, 1.0) == 36
    assert warm_replicas(traffic_of(0.0), 360.0, 1.0) == 0


@pytest.mark.parametrize(
    ("values", "where"),
    [((0, 8, "modal"), "weights_gb"), ((16, -1, "modal"), "params_b"), ((16, 8, "lambda"), "way")],
)
def test_a_bad_cold_start_is_told(values: tuple[float, float, str], where: str) -> None:
    with pytest.raises(InputError) as told:
        cold_start(*values)
    assert told.value.where == where
