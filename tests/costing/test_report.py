"""The costs of one hardware: the recommendation's figures to the cent, and sums worked by hand."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.assess import assess
from engine.assessment import Assessment
from engine.catalogue import load_catalogue
from engine.cost.commitment import levels
from engine.costing import demand as demands
from engine.costing import view
from engine.costing.demand import used_for
from engine.costing.model import CostReport, Way
from engine.costing.report import cost_report
from engine.costing.ways import blocks_per_month
from engine.costing.wins import curve_label
from engine.errors import InputError
from engine.report.currency import Currency
from engine.workload.cost_terms import CostTerms, DemandBy, Site
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 1)
DRAWS = 256


def answer(name: str, **terms: object) -> Assessment:
    settings = Settings(costs=CostTerms.model_validate(terms))
    return assess(EXAMPLES[name].workload, settings=settings, today=TODAY, draws=DRAWS)


def report(name: str, **terms: object) -> CostReport:
    return cost_report(answer(name, **terms), draws=DRAWS)


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_the_chosen_way_costs_what_the_recommendation_says(name: str) -> None:
    given = answer(name)
    found = cost_report(given, draws=DRAWS)
    assert found.chosen.headline is not None
    assert found.chosen.flow is not None
    mine, theirs = found.chosen.headline.per_month, given.best.usd_per_month
    assert (mine.low, mine.likely, mine.high) == pytest.approx(
        (theirs.low, theirs.likely, theirs.high), abs=0.005
    )
    if given.best.usd_per_useful_hour is not None:
        hour = found.chosen.headline.per_useful_hour
        assert hour is not None
        assert hour.likely == pytest.approx(given.best.usd_per_useful_hour.likely, rel=1e-9)
    # Other terms of the same hardware are the same figures as the options of the answer.
    for option in given.options:
        if option.id.rpartition("/")[0] != found.hardware:
            continue
        id = "buy_colocation" if option.acquisition == "buy" else option.acquisition
        way = found.way(id)
        assert way.headline is not None
        assert way.headline.per_month.likely == pytest.approx(
            option.usd_per_month.likely, abs=0.005
        )


def check_sums(way: Way, months: int, rate: float) -> None:
    assert way.flow is not None
    assert way.headline is not None
    rows = way.flow.table()
    total = sum(sum(row.by_month) for row in rows)
    assert way.headline.total.likely == pytest.approx(total, abs=0.005)
    assert way.headline.per_month.likely == pytest.approx(total / months, abs=0.005)
    # Net present value by hand: the month's end, or its start for what is paid in advance.
    value = 0.0
    for line, row in zip(way.flow.lines, rows, strict=True):
        if line.section == "financing":
            continue
        for month, usd in enumerate(row.by_month):
            value += usd / (1 + rate) ** ((month + (line.at == "end")) / 12)
    assert way.headline.npv.likely == pytest.approx(value, abs=0.01)
    for e in (way.headline.total, way.headline.npv, way.headline.per_month):
        assert e.low <= e.likely <= e.high


@pytest.mark.parametrize("name", ["13b-47-runs", "16-nodes-own-or-cloud", "fraud-detection"])
def test_every_way_is_the_sum_of_its_own_table(name: str) -> None:
    found = report(name, discount_pct=7, stored_gb=1000, egress_gb=100, support=True, managed=True)
    assert found.discount_rate == 0.07
    for way in found.ways:
        if way.flow is not None:
            check_sums(way, found.months, 0.07)


def test_costs_per_run_and_per_million_divide_the_same_total() -> None:
    found = report("13b-47-runs")
    total = found.chosen.headline
    assert total is not None
    assert total.per_run is not None
    # 47 runs in six months, entered as 7.83 a month.
    runs = EXAMPLES["13b-47-runs"].workload.runs_per_month
    assert runs == 7.83
    assert total.per_run.likely * runs * 6 == pytest.approx(total.total.likely, rel=1e-9)
    assert total.per_million is not None
    assert total.counted == "tokens"
    tokens = EXAMPLES["13b-47-runs"].workload.train_tokens_b
    if tokens is not None:
        millions = tokens * 1e3 * runs * 6
        assert total.per_million.likely * millions == pytest.approx(total.total.likely, rel=1e-6)
    service = report("event-logging").chosen.headline
    assert service is not None
    assert service.per_run is None
    assert service.per_million is not None
    # 200,000 events a second around the clock: 200,000 × 3,600 × 730 a month.
    rate = EXAMPLES["event-logging"].workload.rate_per_s
    assert rate is not None
    a_month = rate * 3600 * 730 / 1e6
    assert service.per_million.likely * a_month == pytest.approx(service.per_month.likely)


def test_a_reservation_wins_above_the_ratio_of_the_two_prices() -> None:
    found = report("event-logging")
    assert found.months == 24  # whole terms of a year, so that nothing is left over
    point = dict(found.wins.utilization)["reserved for 1 year"]
    # Both fleets work around the clock, the reserved one with room for busier months; by the
    # machine-hour the prices are AWS's discount of 32% for a year apart.
    assert point.value == pytest.approx(0.68)
    assert point.low is not None
    assert point.low < 0.68
    assert point.high is None  # at the far ends the reservation never pays
    curve = {c.label: c for c in found.wins.curves}
    flat, falling = curve["on demand"].usd, curve["reserved for 1 year"].usd
    assert np.allclose(flat, flat[0])
    assert falling[-1] == pytest.approx(0.68 * flat[0])
    shares = curve["reserved for 1 year"].shares
    assert np.allclose(np.array(falling) * np.array(shares), falling[-1])
    assert found.wins.used_share == 1.0
    assert {m.id for m in found.wins.marks} >= {"mark_runs_rent", "mark_share_build"}


def test_the_curves_are_those_of_all_ways_to_pay() -> None:
    found = report("13b-47-runs")
    ends = {c.label: c.end for c in found.wins.curves}
    priced = {w.id for w in found.ways if w.headline is not None and w.mix is None}
    assert {"on_demand", "spot", "dedicated", "buy_colocation", "buy_own_room"} <= priced
    assert {"on demand", "spot", "by the month", "owning", "owning, own room", "best mix"} <= set(
        ends
    )
    assert len(ends) == len(priced) + 1  # one line each, and that of the mixes
    # With all hours used the two purchases are those of the fleet in each place, table by table.
    rooms = {c.label: c.end for c in report("13b-47-runs", site=Site.own_room).wins.curves}
    assert rooms["owning"] == pytest.approx(ends["owning, own room"])
    assert rooms["owning, colocation"] == pytest.approx(ends["owning"])


def test_both_places_of_a_purchase_are_compared_as_one_fleet() -> None:
    # A committed fleet is planned with more room than a rented one (here 14 machines, not 10). A
    # room of one's own costs 60 USD a kW and month, a colocation 174: so it wins from a lower use.
    point = dict(report("16-nodes-own-or-cloud").wins.utilization)
    colocation, room = point["owning"].value, point["owning, own room"].value
    assert colocation is not None
    assert room is not None
    assert room < colocation
    moved = dict(report("16-nodes-own-or-cloud", site=Site.own_room).wins.utilization)
    assert moved["owning"].value == pytest.approx(room)
    assert moved["owning, colocation"].value == pytest.approx(colocation)


def test_the_best_mix_is_at_or_below_every_allowed_line() -> None:
    found = report("13b-47-runs")
    barred = {curve_label(w) for w in found.ways if not w.allowed and w.mix is None}
    allowed = np.array(
        [
            c.usd
            for c in found.wins.curves
            if c.label not in barred and c.label in ("on demand", "by the month", "owning")
        ]
    )
    mix = next(c for c in found.wins.curves if c.label == "best mix")
    # The plan's machines all work or all rest: to commit all of them or none is the best mix.
    assert np.allclose(mix.usd, allowed.min(axis=0))


def test_a_pattern_of_ones_own_pays_for_a_base_and_a_burst() -> None:
    """Two machines in half of the hours, eight in the other half: mean 5 of 8, so 62.5%."""
    demand = levels((2.0, 8.0), (0.5, 0.5))
    same = used_for(demand, 0.625)
    assert same is not None
    assert same.levels.tolist() == [2.0, 8.0]
    # Half as much: 1 and 4. At 75% the mean is 6 = (4 + 8) / 2: the quiet half doubles, the busy
    # half is full.
    for share, quiet, busy in ((0.3125, 1.0, 4.0), (0.75, 4.0, 8.0), (1.0, 8.0, 8.0)):
        other = used_for(demand, share)
        assert other is not None
        assert sorted({*other.levels.tolist()}) == pytest.approx(sorted({quiet, busy}))
    # Idle hours can't be filled by growing: a day of three levels with a third of nothing.
    idle = levels((0.0, 2.0, 4.0), (1 / 3, 1 / 3, 1 / 3))
    assert used_for(idle, 0.7) is None
    # All on or all off: more or fewer busy hours.
    shift = used_for(levels((0.0, 3.0), (0.6, 0.4)), 0.9)
    assert shift is not None
    assert shift.mean == pytest.approx(2.7)


def test_both_places_of_a_purchase_are_shown_and_the_chosen_one_is_the_stated_one() -> None:
    colocation, room = report("trading-models"), report("trading-models", site=Site.own_room)
    assert colocation.chosen.id == "buy_colocation"
    assert room.chosen.id == "buy_own_room"
    for a, b in (("buy_colocation", "buy_own_room"), ("buy_own_room", "buy_colocation")):
        first, second = colocation.way(a).headline, room.way(a).headline
        assert first is not None
        assert second is not None
        assert first.per_month.likely == pytest.approx(second.per_month.likely, abs=0.005), b


def test_what_bars_a_way_is_said() -> None:
    found = report("trading-models")
    assert "own rooms" in found.way("on_demand").refusals[0]
    assert not found.way("buy_colocation").refusals
    mixed = [w for w in found.ways if w.mix is not None and w.mix.bursts > 0]
    assert all(any("own rooms" in r for r in w.refusals) for w in mixed)
    tight = report("trading-models", available_kw=10)
    assert any("10 kW are available" in r for r in tight.way("buy_colocation").refusals)


def test_owning_shows_its_network_power_and_overhead() -> None:
    own = report("trading-models").way("buy_colocation").owning
    assert own is not None
    # 47 B200 are six machines of eight; each draws 12 kW at load and has eight ports.
    assert own.machines == 6
    assert own.kw == pytest.approx(72)
    assert own.network.startswith("48 ports fit one switch")
    assert own.switches == 1
    assert own.article_overhead_share == 0.3
    # One layer by rails: six machines on a rail, ten rails on a switch of 64 ports.
    assert own.rails.startswith("1 switch, one layer, 16 ports free")
    assert own.life_months == 31
    # 48 devices at 30,000 hours each between failures that stop a job.
    assert own.failures_per_year.likely == pytest.approx(48 * 8760 / 30_000)
    flow = report("trading-models").way("buy_colocation").flow
    assert flow is not None
    rows = {row.item: row.total for row in flow.table()}
    running = sum(row.total for row in flow.table() if row.section == "running")
    # Nothing runs before the delivery: the 31 months of use are counted, not the 36 of the plan.
    assert own.overhead_share == pytest.approx(running / 31 * 12 / rows["Machines"])
    # Resale after 36 − 5 months: between the second and the third year of the H100's rows.
    capital = load_catalogue().capital
    y2, y3 = capital["res-h100-y2"].likely, capital["res-h100-y3"].likely
    assert own.resale_months == 31
    assert own.resale.likely == pytest.approx(y2 + (y3 - y2) * 7 / 12)
    assert rows["Resale"] == pytest.approx(-rows["Machines"] * own.resale.likely)


def test_blocks_are_booked_so_that_each_months_work_is_done() -> None:
    # 500 h a month in blocks of 14 days (336 h): two each month, what is left over is lost.
    assert blocks_per_month(500, 14, 3) == [2, 2, 2]
    assert blocks_per_month(336, 14, 3) == [1, 1, 1]
    assert blocks_per_month(10, 14, 3) == [1, 1, 1]
    assert blocks_per_month(0, 14, 2) == [0, 0]
    # A block of 91 days covers 2.99 months: the third month still has 723 h of it.
    assert blocks_per_month(100, 91, 7) == [1, 0, 0, 1, 0, 0, 1]
    for hours in (1.0, 77.0, 400.0):
        # A week each time as often as the month's work needs it.
        assert blocks_per_month(hours, 7, 12) == [int(np.ceil(hours / 168))] * 12


def test_a_stated_demand_is_told_apart_from_the_plans() -> None:
    # Ten machines 8 hours on 5 days: 23.8% of the hours. Committing pays where c/d is below that.
    found = report(
        "16-nodes-own-or-cloud",
        demand_by=DemandBy.schedule, demand_machines=10, hours_per_day=8, days_per_week=5,
    )  # fmt: skip
    view = found.demand
    assert view.source == "your schedule"
    assert view.demand.mean == pytest.approx(10 * 40 / 168)
    assert all(w.mix is None for w in found.ways)
    assert view.best is not None
    assert view.best.mix is not None
    assert view.best.mix.base == 0
    assert view.machines[0] == 10
    assert view.hours[1] == pytest.approx(40 / 168)
    always = report(
        "16-nodes-own-or-cloud",
        demand_by=DemandBy.schedule, demand_machines=10, hours_per_day=24, days_per_week=7,
    ).demand  # fmt: skip
    assert always.best is not None
    assert always.best.mix is not None
    assert always.best.mix.base == 10


def test_a_constant_demand_is_committed_to_where_that_is_cheaper() -> None:
    view = report("16-nodes-own-or-cloud", demand_by=DemandBy.constant, demand_machines=10).demand
    assert view.demand.mean == 10
    assert view.best is not None
    assert view.best.mix is not None
    assert view.best.mix.base == 10
    # The sums of the pure forms stand beside: both meet the same demand.
    assert view.best.headline is not None
    assert view.best.headline.per_month.likely == pytest.approx(view.best.committed_alone)
    assert view.best.committed_alone < view.best.rented_alone


def test_what_a_month_costs_by_its_runs_meets_at_the_break_even() -> None:
    wins = report("13b-47-runs").wins
    lines = dict(wins.by_runs)
    assert wins.runs_now == pytest.approx(7.83)
    (_, none), (most, full) = lines["on demand"]
    assert none == 0
    paid = lines["by the month"][0][1]
    crossing = dict(wins.runs)["By the month"].value
    assert crossing == pytest.approx(paid / (full / most))


def test_demand_that_lacks_a_part_says_which() -> None:
    found = report("16-nodes-own-or-cloud", demand_by=DemandBy.schedule, demand_machines=10)
    assert "hours_per_day" in found.demand.problem
    assert found.chosen.headline is not None
    empty = report("16-nodes-own-or-cloud", demand_by=DemandBy.log)
    assert "log_levels" in empty.demand.problem


def test_a_listed_demand_has_the_variation_of_the_article() -> None:
    # 1,000, 1,600 and 1,000 machine-hours: the largest change is 600 over a mean of 1,200, 50%.
    view = report(
        "16-nodes-own-or-cloud", demand_by=DemandBy.monthly, monthly_hours=(1000, 1600, 1000)
    ).demand
    assert view.month_to_month == pytest.approx(0.5)
    assert "varies by 50%" in view.statement
    assert "the 30% rule says the cloud" in view.statement


def test_months_of_runs_swing_around_their_mean() -> None:
    # 4 machines at half the hours, varying by 40%: months of 40% and 60%.
    found = demands.of_runs(4, 0.5, 0.4)
    assert found.mean == pytest.approx(2.0)
    assert found.peak == 4
    assert found.share_above(0) == pytest.approx(0.5)
    # At 90% the busy months need 108% of the hours of four machines: five for a part of them.
    busy = demands.of_runs(4, 0.9, 0.4)
    assert busy.peak == 5
    # The machine-hours stay: 4 x 0.9, also where the machines of a mean are not whole.
    assert busy.mean == pytest.approx(3.6)
    assert demands.of_runs(3.5, 0.9, 0.4).mean == pytest.approx(3.15)


def test_a_mix_of_the_plan_is_never_dearer_than_renting_it() -> None:
    # Runs side by side fill 429.1 servers on demand; a mix counts whole ones for the same work.
    found = report("disk-bound-pipeline")
    rented = found.way("on_demand").headline
    assert rented is not None
    mixes = [w for w in found.demand.mixes if w.acquisition.endswith("+on_demand")]
    assert mixes
    for way in mixes:
        assert way.headline is not None
        assert way.rented_alone == pytest.approx(rented.per_month.likely, abs=0.005)
        assert way.headline.per_month.likely <= rented.per_month.likely + 0.005


def test_the_idle_budget_is_a_share_of_the_plans_own_bill() -> None:
    found = report("16-nodes-own-or-cloud")
    assert found.chosen.headline is not None
    bill = found.chosen.headline.per_month.likely
    assert found.idle_share == 0.15
    assert found.idle.usd_per_month == pytest.approx(0.15 * bill)
    other = report("16-nodes-own-or-cloud", idle_pct=20, idle_uses=(50, 30, 20, 0))
    assert other.idle.usd_per_month == pytest.approx(0.2 * bill)
    assert other.idle.usd_by_use["stress_tests"] == pytest.approx(0.1 * bill)


def moving(**more: object) -> Workload:
    return parse(
        {
            "kind": "simulation", "current": "cpu", "current_units": 40,
            "current_usd_per_month": 38_000, "useful_hours_per_month": 600, "runs_per_month": 800,
            "parallel_fraction": 0.99, "gpu_speedup": 30, "horizon_months": 24, **more,
        }
    )  # fmt: skip


def test_a_move_is_worked_out_from_todays_bill() -> None:
    settings = Settings(costs=CostTerms(move_engineers=2, move_months=3))
    given = assess(moving(), settings=settings, today=TODAY, draws=DRAWS)
    gpu = next(o for o in given.options if o.placement == "gpu")
    found = cost_report(given, hardware=gpu.id.rpartition("/")[0], draws=DRAWS)
    assert found.move is not None
    assert found.chosen.headline is not None
    after = found.chosen.headline.per_month.likely
    assert found.move.cash_saved_usd_per_month == pytest.approx(38_000 - after)
    # Three months planned take one to three times that: the articles' factor is the upper end.
    assert (found.move.months_of_work.low, found.move.months_of_work.high) == (3, 9)
    staff = load_catalogue().capital["staff-cost"].likely / 12
    assert found.move.engineering_usd.low == pytest.approx(3 * 2 * staff)
    assert found.move.speedup == pytest.approx(0.75 / gpu.time.likely, rel=1e-6)


def test_an_unplanned_move_takes_what_such_moves_took() -> None:
    # kinds.csv, simulation: 2 to 24 engineer-months, likely 8; the overruns are in the 24.
    given = assess(moving(), today=TODAY, draws=0)
    gpu = next(o for o in given.options if o.placement == "gpu")
    found = cost_report(given, hardware=gpu.id.rpartition("/")[0], draws=DRAWS)
    assert found.move is not None
    work = found.move.months_of_work
    assert (work.low, work.likely, work.high) == pytest.approx((2, 8, 24))


def test_where_nothing_moves_the_page_says_why() -> None:
    assert "Nothing runs today" in report("13b-47-runs").move_note
    cpu = assess(moving(), today=TODAY, draws=0)
    place = next(o for o in cpu.options if o.placement == "cpu")
    stays = cost_report(cpu, hardware=place.id.rpartition("/")[0], draws=DRAWS)
    assert stays.move is None
    assert "CPU servers" in stays.move_note


def test_electricity_is_that_of_the_machines_that_run() -> None:
    found = report("trading-models")
    flow = found.way("buy_colocation").flow
    assert flow is not None
    # Six machines stay on: 12 kW while used, 30% of it idle, at the PUE of a colocation.
    best = answer("trading-models").best
    used = min(best.stages[0].busy_hours_per_month, 730)
    capital = load_catalogue().capital
    kwh = 6 * 12 * (used + 0.3 * (730 - used)) * capital["pue-air-modern"].likely
    assert found.carbon.kwh_per_month == pytest.approx(kwh, rel=0.005)
    # The same that the rows of power and cooling pay for in the 31 months from delivery on.
    rows = {row.item: row.total for row in flow.table()}
    paid = (rows["Power"] + rows["Cooling and losses"]) / 31 / capital["pow-us-com"].likely
    assert found.carbon.kwh_per_month == pytest.approx(paid, rel=1e-6)


def test_electricity_is_counted_on_the_grid_of_the_way_looked_at() -> None:
    # The plan's H100 machines of 8 kW, rented in the US: their useful hours at load, the rest at
    # 30%, PUE of the industry; owned in the US they draw the same, on a grid of the same name.
    rent = report("16-nodes-own-or-cloud", way="dedicated")
    pue = load_catalogue().capital["pue-industry"].likely
    assert rent.chosen.flow is not None
    used = float(rent.chosen.flow.useful_hours) / 36
    machines = answer("16-nodes-own-or-cloud").best.stages[0].machines
    kwh = machines * 8 * (used + 0.3 * (730 - used)) * pue
    assert rent.carbon.kwh_per_month == pytest.approx(kwh, rel=0.01)
    assert rent.carbon.region == "United States"
    assert report("16-nodes-own-or-cloud", way="buy_colocation").carbon.region == "United States"


def test_a_log_tells_no_months_so_their_variation_is_as_answered() -> None:
    view = report(
        "16-nodes-own-or-cloud",
        demand_by=DemandBy.log, log_levels=(2, 5, 9, 12), log_shares=(10, 40, 30, 20),
    ).demand  # fmt: skip
    assert view.month_to_month == 0.05


def test_an_unknown_hardware_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="abacus"):
        cost_report(answer("13b-47-runs"), hardware="gpu/abacusx8")


def test_rare_runs_keep_their_digits_and_the_paid_lines_are_explained() -> None:
    found = report("16-nodes-own-or-cloud")
    rows = view.break_even_rows(found, Currency())
    (reserved,) = (
        r["At"] for r in rows if r["Break-even"].startswith("Reserved for 1 year beats pay")
    )
    assert found.wins.runs[0][1].value is not None
    # two significant digits below one run a month: 0.13, not 0.1
    assert reserved == f"{found.wins.runs[0][1].value:.2g} runs a month"
    assert found.wins.months is not None
    assert found.wins.months.value is not None
    (told,) = view.paid_told(found)
    assert told.startswith(f"From month {found.wins.months.value:.0f} on")


def test_what_is_bought_by_the_machine_is_counted_as_the_demand_counts() -> None:
    # 35 GPUs in 49% of the hours, 32 in 94%: worth committing above 57%, so 32, that is four
    # machines of eight. The chart and its sentence count GPUs, as the demand does.
    seen = report("trading-models").demand
    assert seen.machine == "1 × B200 SXM 180GB"
    assert seen.best is not None
    assert seen.best.mix is not None
    assert seen.committed == 8 * seen.best.mix.base
    needed = [h for h, m in zip(seen.hours, seen.machines, strict=True) if m >= seen.committed]
    assert max(needed) > seen.best.mix.break_even_share
    assert f"commit to {seen.committed} and rent more" in seen.statement
    assert seen.best.label == f"{seen.committed} GPUs bought, the rest on demand"


def test_runs_side_by_side_are_within_what_the_machines_can_do() -> None:
    # 30 runs a month, several at a time: the lines by the run reach the plan's own runs.
    found = report("disk-bound-pipeline")
    most = max(x1 for _, (_, (x1, _)) in found.wins.by_runs)
    assert found.wins.runs_now == 30
    assert most >= 30 * (1 - 1e-9)


def test_beside_rented_parts_of_a_machine_no_purchase_is_compared() -> None:
    found = report("fraud-detection")
    assert all(w.flow is None for w in found.ways if w.acquisition == "buy")
    assert found.wins.months is None
    assert found.wins.rent is None


def test_terms_that_only_the_servers_beside_the_gpus_have_make_no_base() -> None:
    told = {"kind": "recsys", "peak_factor": 1000, "services": 1000, "hours_per_run": 20_000}
    given = assess(Workload.model_validate(told), today=TODAY, draws=0)
    assert cost_report(given, draws=DRAWS).ways


def test_a_fleet_beyond_all_bounds_has_a_price() -> None:
    told = {
        "kind": "online_inference", "model_class": "llm", "tokens_in": 1e7, "rate_per_s": 1e9,
    }  # fmt: skip
    given = assess(Workload.model_validate(told), today=TODAY, draws=0)
    assert given.best.usd_per_month.likely > 0
