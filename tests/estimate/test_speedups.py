"""Published speed-ups: every row has its source, and what it is worth follows from its cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import DataError
from engine.estimate.speedups import Speedup, of_groups, pooled, speedups

HEADER = (
    "id,group,application,case,cpu,cpu_cores,gpu,gpus,gpu_gb_per_s,low,likely,high,bound,scope,"
    "precision,licence,notes,source,as_of,confidence\n"
)


def row(**changed: object) -> Speedup:
    base = speedups()["lbm-h100-8480"].model_dump()
    return Speedup.model_validate({**base, **changed})


def test_there_are_forty_sourced_figures_of_many_fields() -> None:
    found = speedups()
    assert len(found) >= 40
    assert all(len(r.provenance.source) > 20 for r in found.values())
    wanted = {
        "molecular_dynamics", "cfd", "weather", "rendering", "video", "genomics", "finance",
        "graph", "optimization", "trees", "linear_algebra", "data", "rl",
    }  # fmt: skip
    assert wanted <= {r.group for r in found.values()}


def test_lattice_boltzmann_by_hand() -> None:
    # 29,561 MLUPs/s on an H100 against 2,162 on 112 cores: 13.67; per 48 cores 13.67·112/48 = 31.9.
    low, likely, high = speedups()["lbm-h100-8480"].per_server or (0, 0, 0)
    assert likely == pytest.approx(29_561 / 2_162 * 112 / 48, rel=1e-3)
    assert low == likely == high


def test_a_card_with_less_bandwidth_is_worth_less_than_the_reference() -> None:
    # An L4 has 300 of 3,350 GB/s: the figure holds at least as it is, at most 11.2 times as much.
    found = speedups()["lbm-l4-9654"]
    low, likely, high = found.per_server or (0, 0, 0)
    plain = 0.7 * 192 / 48
    assert low == pytest.approx(plain)
    assert high == pytest.approx(plain * 3350 / 300)
    assert likely == pytest.approx((low * high) ** 0.5)


def test_six_pairs_of_gpu_and_server_agree_once_divided() -> None:
    rows = [r for r in of_groups(["cfd"]) if r.id.startswith("lbm-") and r.counts]
    worth = [r.likely * (r.cpu_cores or 0) / 48 * 3350 / (r.gpu_gb_per_s or 1) for r in rows]
    assert len(worth) == 6
    assert 19 < min(worth) < max(worth) < 37


def test_times_one_core_is_divided_by_a_servers_cores() -> None:
    found = speedups()["wrf-wsm5"]
    assert found.one_core
    # 206 times one core with copies is 4.3 times a server.
    assert (found.per_server or (0, 0, 0))[0] == pytest.approx(206 / 48)


def test_figures_without_cores_do_not_count() -> None:
    assert speedups()["pagerank-dgx2"].per_server is None
    assert pooled([speedups()["pagerank-dgx2"], speedups()["gunrock-ligra"]]) is None


def test_best_cases_raise_the_upper_end_only() -> None:
    base = [row(id="a", likely=13.67), row(id="b", likely=13.67)]
    best = row(id="c", low=100.0, likely=100.0, high=100.0, bound="up_to")
    without, with_it = pooled(base), pooled([*base, best])
    assert without is not None
    assert with_it is not None
    assert with_it.likely == pytest.approx(without.likely)
    assert with_it.low == pytest.approx(without.low)
    assert with_it.high > without.high


def test_whole_applications_count_before_kernels() -> None:
    found = pooled([row(id="a"), row(id="b"),
                    row(id="k", scope="kernel", low=500.0, likely=500.0, high=500.0)])  # fmt: skip
    assert found is not None
    assert (found.n, found.of) == (2, 3)
    assert found.high == pytest.approx(31.9, rel=0.01)


def test_a_row_out_of_order_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "speedups.csv"
    file.write_text(
        HEADER + "x,cfd,A,c,cpu,1,gpu,1,,3,2,4,measured,kernel,fp32,open,,a source,2026-01-01,low\n"
    )
    with pytest.raises(DataError, match="not in order"):
        speedups(file)
