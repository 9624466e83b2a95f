"""From the recommended plan and the page's terms to the conditions of a run, each with its source.

What the workload and the plan already say is taken from them; a term that was set counts before;
the tables give what nobody said. Every uncertain condition is a `Known`: a range with its source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from engine.assessment import Acquisition, Assessment, PriceRef, StagePlan
from engine.catalogue import load_catalogue
from engine.cost.cloud import spot_terms
from engine.cost.parameters import cost_parameters, value
from engine.decide.inputs import standard_normal
from engine.decide.paying import spot_goodput
from engine.decide.priors import likely, parameter
from engine.errors import InputError
from engine.estimate.calibration_table import training_calibration
from engine.estimate.failure_rates import fleet, reliability_parameters
from engine.estimate.reliability import Array, Real
from engine.estimate.run_reliability import (
    Checks,
    RunConditions,
    best_spares,
    slowest_machine,
    through,
)
from engine.estimate.whole_run import ENDS, failure_goodput, restart_hours
from engine.explain.curves.common import lead_stage
from engine.workload.answers import Kind
from engine.workload.reliability_terms import ReliabilityTerms, Spot
from engine.workload.workload import HOURS_PER_MONTH, LLM_TRAINING, SERVICES

HOURS_PER_DAY = 24.0
DRAWS = 512
Z90 = 1.2815515655446004
# Jobs whose machines work in step: one that fails stops them all.
IN_STEP = LLM_TRAINING | {Kind.dl_training, Kind.simulation, Kind.rl, Kind.pipeline}
YOURS = "your figure"


@dataclass(frozen=True, slots=True)
class Known:
    """One condition as it entered: a range (80%) with its unit and source."""

    name: str
    title: str
    low: float
    likely: float
    high: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The run as the plan and the terms have it.

    devices : GPUs or CPU servers; per_machine : of one machine
    useful_hours : of work if nothing failed; usd_per_device_hour : of the run, on spot or not
    ordinary_usd, spot_usd : for a device and hour of the same hardware where both are on offer
    in_step : all stop when one fails; else the lost task alone is done again
    service : answers requests, so there is no run; its figures are those of a month
    """

    label: str
    name: str
    unit: str
    devices: int
    per_machine: int
    useful_hours: float
    usd_per_device_hour: float
    acquisition: str
    provider: str
    spot: bool
    owned: bool
    in_step: bool
    service: bool
    params_b: float | None
    ordinary_usd: float | None = None
    spot_usd: float | None = None

    @property
    def machines(self) -> int:
        """Machines of the run."""
        return max(1, math.ceil(self.devices / self.per_machine))

    @property
    def usd_per_hour(self) -> float:
        """What the fleet costs an hour."""
        return self.devices * self.usd_per_device_hour


def run_plan(answer: Assessment, terms: ReliabilityTerms) -> RunPlan:
    """The run of the recommendation, with what the terms change of it."""
    stage = lead_stage(answer)
    workload = answer.workload
    service = workload.kind in SERVICES
    gpu = stage.hardware == "gpu"
    per_machine = max(1, round(stage.units / max(stage.machines, 1))) if gpu else 1
    of_run = max(round(stage.units / stage.side_by_side), 1)
    devices = terms.devices or of_run
    if gpu and terms.devices and terms.devices > per_machine:
        per_machine = max(per_machine, min(8, terms.devices))
    if stage.price is not None:
        usd = stage.price.usd_per_unit_hour
    else:
        usd = stage.usd_per_month.likely / HOURS_PER_MONTH / max(stage.units, 1)
    planned = stage.acquisition == "spot"
    spot = planned if terms.spot is Spot.plan else terms.spot is Spot.on
    provider = stage.price.provider if stage.price else ""
    other = _offer(answer, stage, "on_demand" if planned else "spot")
    other_usd = other.usd_per_unit_hour if other else None
    ordinary_usd, spot_usd = (other_usd, usd) if planned else (usd, other_usd)
    if other is not None and spot != planned:
        usd, provider = other.usd_per_unit_hour, other.provider
    if terms.run_days is not None:
        hours = terms.run_days * HOURS_PER_DAY
    else:
        # The same work on another count of devices takes as much longer or shorter.
        scaled = of_run / devices
        hours = HOURS_PER_MONTH if service else _useful_hours(answer, stage) * scaled
    return RunPlan(
        label=answer.best.label,
        name=stage.name,
        unit="GPU" if gpu else "server",
        devices=devices,
        per_machine=per_machine,
        useful_hours=max(hours, 1e-3),
        usd_per_device_hour=usd,
        acquisition=stage.acquisition,
        provider=provider,
        spot=spot,
        owned=stage.acquisition == "buy" and not spot,
        in_step=workload.kind in IN_STEP and not service,
        service=service,
        params_b=workload.model_params_b,
        ordinary_usd=ordinary_usd,
        spot_usd=spot_usd,
    )


def _offer(answer: Assessment, stage: StagePlan, terms: Acquisition) -> PriceRef | None:
    """The lowest price of the same hardware on other terms, among the options."""
    prices = [
        s.price for o in answer.options for s in o.stages
        if s.sku == stage.sku and s.acquisition == terms and s.price is not None
    ]  # fmt: skip
    return min(prices, key=lambda p: p.usd_per_unit_hour, default=None)


def _useful_hours(answer: Assessment, stage: StagePlan) -> float:
    """Hours of work of a run.

    What the plan's time has in it of what is told here comes out: of a language model the usual
    failures and checkpoints (the user's own goodput, where that was given) and the wait for the
    slowest machine, on spot the interruptions and times without machines.
    """
    hours = answer.best.time.likely
    if stage.hardware == "gpu" and answer.workload.kind in LLM_TRAINING:
        gpus = max(stage.units / stage.side_by_side, 1.0)
        machines = max(stage.machines / stage.side_by_side, 1.0)
        own = answer.settings.training.goodput_pct
        kept = float(failure_goodput(gpus)) if own is None else own / 100
        spread = training_calibration()["parameter.straggler"].value
        hours *= kept / float(slowest_machine(machines, spread))
    if stage.acquisition != "spot":
        return hours
    rate, restart = likely("spot_interruptions_per_node_day"), likely("restart_h")
    at_work = likely("spot_capacity_share") * spot_goodput(rate, stage.machines, restart)
    return hours * float(at_work)


def known(plan: RunPlan, terms: ReliabilityTerms) -> dict[str, Known]:
    """Every condition of the run by name, with its range and source.

    Raises
    ------
    InputError : terms name a fleet that is not known
    """
    mine = cost_parameters()["spot_requeue_h"]
    slow = training_calibration()["parameter.straggler"]
    hazard = parameter("spot_interruptions_per_node_day")
    repair = _of_table("repair_owned_h" if plan.owned else "repair_rented_h", "repair")
    found = [
        _mtbf(plan, terms),
        _decision("checkpoint_stall_h", "save", "Stall of a checkpoint",
                  None if terms.stall_s is None else terms.stall_s / 3600),
        _restart(plan, terms),
        _of_table("swap_share", "swap_share"),
        repair if terms.repair_h is None else _exact(repair, terms.repair_h),
        Known("spread", "Spread of the machines' pace", slow.low, slow.value, slow.high,
              slow.unit, f"calibration_training.csv: {slow.source}"),
        _of_table("silent_errors_per_1000_node_days", "silent"),
        _of_table("unseen_days", "unseen"),
        _of_table("alarm_pause_h", "alarm"),
    ]  # fmt: skip
    if plan.spot:
        taken = Known("reclaims", "Interruptions of a spot machine", hazard.low, hazard.likely,
                      hazard.high, "1/machine-day", hazard.source)  # fmt: skip
        own = terms.reclaims_per_day
        found.append(taken if own is None else _exact(taken, own))
        found.append(
            Known("requeue", "Wait for the next spot machine", mine.low, mine.likely, mine.high,
                  "h", mine.source)
        )  # fmt: skip
        had = parameter("spot_capacity_share")
        found.append(Known("had", "Spot machines can be had", had.low, had.likely, had.high,
                           "share", had.source))  # fmt: skip
    return {k.name: k for k in found}


def _mtbf(plan: RunPlan, terms: ReliabilityTerms) -> Known:
    """Device-hours between failures: the user's own, a published fleet's, or the usual range."""
    title = f"{plan.unit}-hours between failures"
    unit = f"{plan.unit}-hours"
    node_hours = plan.per_machine * HOURS_PER_DAY * 1000
    if terms.failures_per_1000_node_days is not None:
        own = node_hours / terms.failures_per_1000_node_days
        return Known("device_mtbf", title, own, own, own, unit, YOURS)
    if terms.like:
        if plan.unit != "GPU":
            raise InputError(
                "the published fleets are GPU machines", where="like",
                right="your own figure, or nothing",
            )  # fmt: skip
        published = fleet(terms.like)
        mtbf = published.device_mtbf_h or 0.0
        if published.rate_range and published.rate:
            low, high = published.rate_range
            ends = mtbf * published.rate / high, mtbf * published.rate / low
        else:  # a count is known to about its square root
            off = Z90 / math.sqrt(published.failures) if published.failures else 0.0
            ends = mtbf / (1 + off), mtbf / max(1 - off, 0.2)
        return Known("device_mtbf", title, ends[0], mtbf, ends[1], unit,
                     f"{published.name}: {published.provenance.source}")  # fmt: skip
    name = "mtbf_gpu_hours" if plan.unit == "GPU" else "cpu_node_mtbf_h"
    usual = parameter(name)
    return Known("device_mtbf", title, usual.low, usual.likely, usual.high, unit, usual.source)


def _decision(id: str, name: str, title: str, own: float | None) -> Known:
    p = parameter(id)
    usual = Known(name, title, p.low, p.likely, p.high, "h", p.source)
    return usual if own is None else _exact(usual, own)


def _restart(plan: RunPlan, terms: ReliabilityTerms) -> Known:
    """From a failure to useful work: fleets of GPUs in step as the training plan has them."""
    own = None if terms.restart_min is None else terms.restart_min / 60
    title = "From a failure to useful work"
    if not (plan.in_step and plan.unit == "GPU"):
        return _decision("restart_h", "restart", title, own)
    low, usual, high = (float(restart_hours(float(plan.devices), end)) for end in ENDS)
    source = (
        "training_parameters.csv: 20 min where people restart the job (up to 512 GPUs; OPT-175B), "
        "5 min where it restarts by itself (from 4,096 GPUs; Llama 3 405B), between them by size"
    )
    known = Known("restart", title, low, usual, high, "h", source)
    return known if own is None else _exact(known, own)


def _of_table(id: str, name: str) -> Known:
    p = reliability_parameters()[id]
    return Known(name, p.description, p.low, p.likely, p.high, p.unit, p.provenance.source)


def _exact(usual: Known, own: float) -> Known:
    return Known(usual.name, usual.title, own, own, own, usual.unit, YOURS)


def checks_of(terms: ReliabilityTerms, pause: Real) -> Checks:
    """The watch for silent corruption: the article's (every 6 hours, 2%) where nothing is set.

    A check takes as long however often it comes: 2% of six hours is 12% of one.
    """
    usual = value("checkpoint_000_hours")
    every = terms.check_every_h or usual
    if terms.check_pct is None:
        share = value("checkpoint_000_share") * usual / every
    else:
        share = terms.check_pct / 100
    return Checks(every=every, share=share, sigmas=terms.sigmas, pause=pause)


def conditions(
    plan: RunPlan, terms: ReliabilityTerms, found: dict[str, Known], z: Array | None = None
) -> RunConditions:
    """The conditions of the run at their likely values, or drawn.

    Without a term for them, as many spare machines stand by as pay for themselves.

    z : standard normal draws, shape (draws, conditions), in the order of `found`
    """
    at: dict[str, Real] = {}
    for i, (name, k) in enumerate(found.items()):
        if z is None or k.low == k.high or k.low <= 0:
            at[name] = k.likely
        else:
            at[name] = through(k.low, k.likely, k.high, z[:, i])
    notice = 0.0
    if plan.spot:
        notice = float(np.max(spot_terms(plan.provider, load_catalogue().running).notice))
    run = RunConditions(
        devices=float(plan.devices if plan.in_step else plan.per_machine),
        per_machine=float(plan.per_machine),
        device_mtbf=at["device_mtbf"],
        save=at["save"],
        restart=at["restart"],
        interval=None if terms.interval_min is None else terms.interval_min / 60,
        soonest=reliability_parameters()["soonest_checkpoint_h"].likely,
        longest=plan.useful_hours if plan.in_step else None,
        swap_share=np.minimum(at["swap_share"], 1.0),
        repair=at["repair"],
        spares=(terms.spares or 0) if plan.in_step else 0,
        spread=at["spread"] if plan.in_step else 0.0,
        one_slower=terms.one_slower_pct / 100 if plan.in_step else 0.0,
        silent=at["silent"] / 1000 / HOURS_PER_DAY,
        unseen=at["unseen"] * HOURS_PER_DAY,
        checks=checks_of(terms, at["alarm"]) if terms.checks else None,
        reclaims=at["reclaims"] / HOURS_PER_DAY if plan.spot else 0.0,
        notice=notice,
        requeue=at["requeue"] if plan.spot else 0.0,
        had=at["had"] if plan.spot else 1.0,
    )
    if terms.spares is None and plan.in_step:
        usual = run if z is None else conditions(plan, terms, found)
        run = replace(run, spares=best_spares(usual) if z is None else usual.spares)
    return run


def draws(found: dict[str, Known]) -> Array:
    """Standard normal draws for the conditions; the same for the same number of them."""
    return standard_normal(len(found), DRAWS)
