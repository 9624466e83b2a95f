"""Time of a training run on fleets of one GPU, from the search over plans that fit.

The recommendation, the costs and the training page so rest on the same plans: for each fleet size
the fastest split that fits the memory, with the goodput of a fleet of that size. Terms of the
training page (the model's own shape, sequence length, precision, code, network) enter here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from engine.catalogue import Accelerator, Catalogue, Network
from engine.decide.candidates import Unit
from engine.decide.evaluation import Context
from engine.decide.numbers import Array
from engine.errors import InputError
from engine.estimate.plan import Task
from engine.estimate.search import plans_found
from engine.estimate.shape import ModelShape
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.shape_text import read_shape
from engine.estimate.training_hardware import HardwareChoice
from engine.estimate.training_job import Job
from engine.workload.answers import Kind
from engine.workload.training_terms import TrainingTerms, TrainTask
from engine.workload.workload import HOURS_PER_MONTH, Workload

TASKS: dict[Kind, Task] = {
    Kind.llm_pretraining: "pretrain",
    Kind.llm_finetuning: "finetune",
    Kind.lora: "lora",
}
# The network that GPUs of a kind are usually joined by, by the start of their sku.
USUAL_NETWORKS = (
    ("b200", "ib-ndr400-b200"), ("b300", "ib-xdr800"), ("gb", "ib-ndr400-b200"),
    ("h", "ib-ndr400"), ("mi3", "roce-400g"), ("a100-sxm", "ib-hdr200"),
)  # fmt: skip
SLOWEST_USUAL = "eth-100g"  # of cards without a fabric of their own
FLEETS = (256, 2048, 16_384)  # largest of each round of the search
ROOM = 3.0  # draws of the work may ask for fleets so much quicker
HOURS_PER_DAY = 24.0


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """Fleets of one accelerator that can train the model: GPUs and hours of a run."""

    gpus: Array
    hours: Array


def training_table(unit: Unit, ctx: Context) -> TrainingTable | None:
    """Hours of a run on every fleet of this accelerator that holds it, smallest first.

    None where nothing fits. Larger fleets are looked at while the smaller ones are too slow.
    """
    inputs, terms = ctx.inputs, ctx.settings.training
    acc = unit.accelerator
    assert acc is not None
    ask = _Ask(
        accelerator=acc,
        per_machine=unit.per_machine,
        network=network_of(ctx.catalogue, acc, terms) if unit.per_machine > 1 else None,
        shape=model_shape(ctx.workload, terms, inputs.ranges["model_params_b"].likely),
        task=task_of(ctx.workload, terms),
        terms=terms.model_copy(update=_NOT_TIMED),
        gpus=(unit.per_machine, unit.per_machine),
    )
    tokens_b = inputs.ranges["train_tokens_b"].likely
    if unit.per_machine == 1:  # no fabric between such machines is on offer
        return _table((_fastest(ask),), tokens_b)
    runs = max(inputs.ranges["runs_per_month"].likely, 1e-6)
    wanted = min(inputs.ranges["patience_h"].likely, HOURS_PER_MONTH / runs)
    rounds: list[_Fastest] = []
    found, least = None, unit.per_machine
    for most in FLEETS:
        if most >= least:
            rounds.append(_fastest(replace(ask, gpus=(least, most))))
            least = most + 1
        found = _table(rounds, tokens_b)
        if found is not None and found.hours.min() < wanted / ROOM:
            break
    return found


def _table(rounds: Sequence[_Fastest], tokens_b: float) -> TrainingTable | None:
    """Rounds of ever larger fleets below one another; None where no fleet holds the model."""
    gpus = np.concatenate([r.gpus for r in rounds])
    if not gpus.size:
        return None
    hours = tokens_b * np.concatenate([r.hours_per_btoken for r in rounds])
    # A larger fleet is never planned slower: it could leave the rest idle.
    return TrainingTable(gpus, np.minimum.accumulate(hours))


def model_shape(workload: Workload, terms: TrainingTerms, params_b: float) -> ModelShape:
    """The model's shape: of the configuration that was brought, else of its size alone."""
    if terms.shape:
        return read_shape(terms.shape)
    return shape_from_size(params_b, workload.active_params_b)


def task_of(workload: Workload, terms: TrainingTerms) -> Task:
    """What is trained: as the terms say, else as the kind of work implies."""
    if terms.task is TrainTask.by_job:
        return TASKS[workload.kind]
    return cast(Task, terms.task.value)


def network_of(catalogue: Catalogue, acc: Accelerator, terms: TrainingTerms) -> Network:
    """The network between machines: the one named, or the usual one of the GPU."""
    if terms.network:
        if terms.network not in catalogue.networks:
            raise InputError(
                f"there is no network {terms.network}", where="network", right="one of the list"
            )
        return catalogue.networks[terms.network]
    usual = next((n for start, n in USUAL_NETWORKS if acc.sku.startswith(start)), SLOWEST_USUAL)
    whole = acc.form_factor.startswith(("SXM", "OAM"))
    return catalogue.networks[usual if whole and usual in catalogue.networks else SLOWEST_USUAL]


# Terms that move no time of a run on a given fleet: left at the usual, so that tables keep.
_NOT_TIMED = {
    name: getattr(TrainingTerms(), name)
    for name in (
        "shape", "task", "goal", "budget_usd", "sure_pct", "gpu", "mixed_with", "network", "hire",
        "least_gpus", "most_gpus", "experiments", "measured_s", "measured_steps", "measured_gpus",
        "measured_batch", "model_id", "dataset", "checkpoint_dir", "partition",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ask:
    """What times depend on.

    gpus : fewest and most of a fleet
    """

    accelerator: Accelerator
    per_machine: int
    network: Network | None
    shape: ModelShape
    task: Task
    terms: TrainingTerms
    gpus: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Fastest:
    """Fleets of whole machines that hold the model, smallest first, each with its fastest plan."""

    gpus: Array
    hours_per_btoken: Array


@lru_cache(maxsize=1024)
def _fastest(ask: _Ask) -> _Fastest:
    terms = ask.terms
    choice = HardwareChoice(
        accelerator=ask.accelerator,
        network=ask.network,
        gpus_per_node=ask.per_machine,
        slowest_gpu=terms.slowest_pct / 100,
        link_share=terms.link_pct / 100,
    )
    job = Job(
        shape=ask.shape,
        tokens=1e9,  # the time of a run is in proportion
        choices=(choice,),
        seq_len=terms.seq_len,
        task=ask.task,
        precision=terms.precision.value,
        batch_seqs=terms.batch_seqs or 0,
        gpus=ask.gpus,
        goodput=None if terms.goodput_pct is None else terms.goodput_pct / 100,
        software=terms.software.value,
        software_year=terms.software_year,
        lora_rank=terms.lora_rank,
    )
    found = plans_found(job)
    if found is None:
        return _Fastest(np.empty(0), np.empty(0))
    gpus, hours = found.plans.gpus, found.days * HOURS_PER_DAY
    whole = gpus % ask.per_machine == 0
    sizes, which = np.unique(gpus[whole], return_inverse=True)
    best = np.full(sizes.size, np.inf)
    np.minimum.at(best, which, hours[whole])
    return _Fastest(sizes, best)
