"""From a job and the terms of the training plan to the search's question, and the launch kit's.

It joins what the decision knows (prices, hardware on offer) with the search over plans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date

from engine.assessment import PriceRef
from engine.catalogue import Accelerator, Catalogue, Network, load_catalogue
from engine.decide.candidates import Price, Unit, gpu_units
from engine.decide.inputs import resolve
from engine.decide.quotes import with_quotes
from engine.decide.training_time import model_shape, network_of, task_of
from engine.errors import InputError
from engine.estimate.shape import ModelShape
from engine.estimate.training_hardware import HardwareChoice
from engine.estimate.training_job import Job, MeasuredSteps, PlanResult
from engine.estimate.training_plan import TrainingAnswer, plan_training
from engine.report.launch import Forecast, LaunchAsk
from engine.report.launch import Network as Fabric
from engine.report.launch.tables import cloud_of, network_kind, owner_of
from engine.workload.settings import Settings
from engine.workload.training_terms import TrainingTerms
from engine.workload.workload import LLM_TRAINING, Workload

MEASURED_BOARD = 8  # GPUs whose links nccl-tests' figures of the catalogue are of
MOST_KINDS = 6  # of GPU that one search looks at: the cheapest by what a dollar computes


@dataclass(frozen=True, slots=True, eq=False)
class TrainingReport:
    """The answer of the search with what stands behind its hardware.

    prices : of a GPU-hour, by sku; skipped : hardware that was left out, in words
    """

    answer: TrainingAnswer
    prices: dict[str, PriceRef]
    skipped: tuple[str, ...]


def train_report(
    workload: Workload,
    settings: Settings,
    catalogue: Catalogue | None = None,
    *,
    today: date | None = None,
) -> TrainingReport:
    """The best plan for a training job under the terms, with the next ones and what moves it.

    Raises
    ------
    InputError : when the work is no training of a language model, or a term can't be used
    """
    check_kind(workload)
    day = today or date.today()
    catalogue = catalogue if catalogue is not None else load_catalogue()
    quoted, unranked = with_quotes(catalogue, workload, day)
    terms: TrainingTerms = settings.training
    units = _units(gpu_units(quoted, workload, day, settings.costs))
    choices, prices, skipped = _choices(quoted, units, terms)
    job = training_job(workload, terms, choices)
    answer = plan_training(job, terms.goal.value, quoted.networks.values())
    answer = replace(answer, warnings=(*unranked, *answer.warnings))
    if answer.best is not None and (doubt := _elsewhere(answer.best, prices)):
        answer = replace(answer, warnings=(*answer.warnings, doubt))
    return TrainingReport(answer, prices, skipped)


def _elsewhere(best: PlanResult, prices: dict[str, PriceRef]) -> str:
    """A warning where the price is of a provider that does not have the plan's network."""
    network, price = best.choice.network, prices.get(best.choice.accelerator.sku)
    nodes = best.plan.gpus // max(min(best.choice.node, best.plan.gpus), 1)
    if network is None or price is None or nodes <= 1:
        return ""
    planned = fabric_of(network, nodes)
    owner = owner_of(planned)
    joined = cloud_of(price.provider).joins_by(planned) == planned
    if price.provider == owner or (joined and not owner):
        return ""
    if owner:
        return (
            f"The price is {price.provider}'s, and {network.name} is {owner}'s alone: put "
            f"{owner}'s price among your quotes."
        )
    return (
        f"The price is {price.provider}'s, whose machines are joined by its own network, not by "
        f"{network.name}: plan with that, or put another provider's price among your quotes."
    )


def check_kind(workload: Workload) -> None:
    """Refuse work that is no training of a language model."""
    if workload.kind not in LLM_TRAINING:
        raise InputError(
            "this page plans the training of a language model",
            where="kind",
            right="pretraining, fine-tuning or LoRA, on the page of the job's details",
        )


def model_of(workload: Workload, terms: TrainingTerms) -> ModelShape:
    """The model's shape: of the configuration that was brought, else of its size alone."""
    size = workload.model_params_b
    if size is None:
        size = resolve(workload).ranges["model_params_b"].likely
    return model_shape(workload, terms, size)


def training_job(
    workload: Workload, terms: TrainingTerms, choices: tuple[HardwareChoice, ...]
) -> Job:
    """The question to the search."""
    ranges = resolve(workload).ranges
    job = Job(
        shape=model_of(workload, terms),
        tokens=ranges["train_tokens_b"].likely * 1e9,
        choices=choices,
        seq_len=terms.seq_len,
        task=task_of(workload, terms),
        precision=terms.precision.value,
        batch_seqs=terms.batch_seqs or 0,
        gpus=(terms.least_gpus, terms.most_gpus),
        deadline_days=workload.deadline_days,
        budget_usd=terms.budget_usd,
        sure=terms.sure_pct / 100,
        goodput=None if terms.goodput_pct is None else terms.goodput_pct / 100,
        experiments=terms.experiments,
        software=terms.software.value,
        software_year=terms.software_year,
        lora_rank=terms.lora_rank,
    )
    if terms.measured_s is None:
        return job
    if not terms.gpu or terms.measured_gpus is None:
        missing = "gpu" if not terms.gpu else "measured_gpus"
        raise InputError(
            "your own steps need to be told on what they ran",
            where=missing,
            right="choose the GPU, and enter how many ran them",
        )
    own = MeasuredSteps(
        choices[0], terms.measured_gpus, terms.measured_s, terms.measured_steps,
        terms.measured_batch,
    )  # fmt: skip
    return replace(job, measured=(own,))


def hardware_on_offer(
    workload: Workload, settings: Settings, catalogue: Catalogue, today: date
) -> dict[str, str]:
    """GPUs with a price for training, by sku, for a list to pick from."""
    quoted, _ = with_quotes(catalogue, workload, today)
    return {
        u.sku: u.name for u in _units(gpu_units(quoted, workload, today, settings.costs)).values()
    }


def networks_on_offer(catalogue: Catalogue) -> dict[str, str]:
    """Networks between machines, by id."""
    return {n.id: n.name for n in catalogue.networks.values() if n.layer == "scale-out"}


# --- hardware


def _units(units: list[Unit]) -> dict[str, Unit]:
    """One entry for each GPU: whole machines where they are offered."""
    found: dict[str, Unit] = {}
    for unit in units:
        if unit.accelerator is None or not unit.accelerator.bf16_tflops_dense:
            continue
        if unit.sku not in found or unit.per_machine > found[unit.sku].per_machine:
            found[unit.sku] = unit
    return found


def _choices(
    catalogue: Catalogue, units: dict[str, Unit], terms: TrainingTerms
) -> tuple[tuple[HardwareChoice, ...], dict[str, PriceRef], tuple[str, ...]]:
    """What the search looks at: the GPU named, or those that compute most for a dollar."""
    if terms.gpu and terms.gpu not in units:
        raise InputError(
            f"{terms.gpu} is not on offer there", where="gpu", right="another GPU, or your quote"
        )
    hired = {sku: unit for sku, unit in units.items() if terms.hire.value in unit.prices}
    skipped: list[str] = []
    if terms.gpu:
        if terms.gpu not in hired:
            raise InputError(
                f"{units[terms.gpu].name} has no price on these terms",
                where="hire",
                right=", ".join(units[terms.gpu].prices),
            )
        kept = [hired[terms.gpu]]
    else:
        kept = sorted(hired.values(), key=lambda u: _usd_per_flop(u, terms))[:MOST_KINDS]
        dropped = [u.name for u in hired.values() if u not in kept]
        if dropped:
            skipped.append("computes less for a dollar: " + ", ".join(dropped))
        unpriced = [u.name for sku, u in units.items() if sku not in hired]
        if unpriced:
            skipped.append("no price on these terms: " + ", ".join(unpriced))
    if not kept:
        raise InputError(
            "no GPU has a price on these terms", where="hire", right="other terms, or your quote"
        )
    prices = {u.sku: ref for u in kept if (ref := _price(u, terms).ref) is not None}
    return tuple(_choice(catalogue, u, terms) for u in kept), prices, tuple(skipped)


def _price(unit: Unit, terms: TrainingTerms) -> Price:
    return unit.prices[terms.hire.value]


def _usd_per_flop(unit: Unit, terms: TrainingTerms) -> float:
    acc = unit.accelerator
    assert acc is not None
    assert acc.bf16_tflops_dense is not None
    return float(_price(unit, terms).likely) / acc.bf16_tflops_dense


def _choice(catalogue: Catalogue, unit: Unit, terms: TrainingTerms) -> HardwareChoice:
    acc = unit.accelerator
    assert acc is not None
    also: tuple[Accelerator, ...] = ()
    if terms.mixed_with and terms.mixed_with != unit.sku:
        if terms.mixed_with not in catalogue.accelerators:
            raise InputError(
                f"{terms.mixed_with} is not in the catalogue", where="mixed_with", right="another"
            )
        also = (catalogue.accelerators[terms.mixed_with],)
    return HardwareChoice(
        accelerator=acc,
        network=network_of(catalogue, acc, terms),
        usd_per_gpu_hour=_price(unit, terms).likely,
        also=also,
        slowest_gpu=terms.slowest_pct / 100,
        link_share=terms.link_pct / 100,
        gpus_per_node=unit.per_machine if unit.per_machine > 1 else None,
    )


# --- the launch kit


def _region(price: PriceRef | None) -> str:
    """The region of the price where it is one name of a provider, else none."""
    region = price.region.lower() if price is not None else ""
    return region if re.fullmatch(r"[a-z]+-[a-z]+-?\d+", region) else ""


def fabric_of(network: Network | None, nodes: int) -> Fabric:
    """The kind of network as the launch files need it; none for one node."""
    return "none" if nodes <= 1 or network is None else network_kind(network.id)


def expected_bus(
    catalogue: Catalogue, accelerator: Accelerator, network: Network | None, per_node: int,
    nodes: int,
) -> float | None:  # fmt: skip
    """All-reduce bus bandwidth to be seen over all GPUs [GB/s]; None where nothing tells it.

    Rings over K nodes of g GPUs put (K − 1)/(g·K − 1) of the bus on each GPU's own link out of its
    node, at most what the links inside carry: the relation by which nccl-tests' figures became the
    catalogue's rates by link (data/networks.csv, wire_basis). Inside one node the figure of a full
    board of eight.
    """
    inside = next(
        (
            n.measured_allreduce_busbw_gb_per_s
            for n in catalogue.networks.values()
            if n.layer == "scale-up" and n.measured_allreduce_busbw_gb_per_s
            and n.nominal_gb_per_s_per_direction_per_gpu
            == accelerator.scaleup_gb_per_s_per_direction
        ),
        None,
    )  # fmt: skip
    if nodes <= 1:
        return inside if per_node == MEASURED_BOARD else None
    if network is None or network.wire_gb_per_s_per_gpu is None:
        return None
    bus = network.wire_gb_per_s_per_gpu * (nodes * per_node - 1) / (nodes - 1)
    return bus if inside is None else min(bus, inside)


def launch_ask(
    workload: Workload,
    terms: TrainingTerms,
    report: TrainingReport,
    result: PlanResult,
    *,
    config: str = "",
    checkpoint_minutes: float | None = None,
) -> LaunchAsk:
    """What the launch kit of a plan is asked for.

    checkpoint_minutes : of work between saves, as told on the reliability page; None for the best
    """
    job = report.answer.job
    node = min(result.choice.node, result.plan.gpus)
    nodes = max(result.plan.gpus // node, 1)
    price = report.prices.get(result.choice.accelerator.sku)
    return LaunchAsk(
        run_name=workload.name or "training run",
        shape=job.shape,
        gpu=result.choice.accelerator.sku,
        gpus_per_node=node,
        nodes=nodes,
        network=fabric_of(result.choice.network, nodes),
        dataset=terms.dataset,
        tokens=job.tokens,
        checkpoint_minutes=checkpoint_minutes,
        expected_bus_gb_per_s=expected_bus(
            load_catalogue(), result.choice.accelerator, result.choice.network, node, nodes
        ),
        time_limit_hours=max(result.days.high * 24, 1.0),
        forecast=Forecast(
            result.step_s.likely, result.step_s.low, result.step_s.high, result.memory.likely,
            result.memory.usable, result.memory.items, result.calibrated,
        ),
        model=terms.model_id,
        config=config,
        checkpoint_dir=terms.checkpoint_dir,
        cloud=price.provider if price is not None else "",
        region=_region(price),
        spot=terms.hire.value == "spot",
        partition=terms.partition,
    )  # fmt: skip
