"""The case to be costed: one hardware of an assessment, evaluated at the point and over draws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from engine.assessment import Acquisition, Assessment
from engine.catalogue import Catalogue
from engine.cost.cash_flow import CashFlow
from engine.decide.candidates import Spec, Unit
from engine.decide.context import Setting, setting
from engine.decide.evaluate import Memo, evaluate
from engine.decide.evaluation import Context, Evaluation, Pool, Values
from engine.decide.paying import drawn_flow, flow_of
from engine.decide.shortlist import on_all_terms, shortlist
from engine.errors import InputError
from engine.workload.cost_terms import CostTerms, Site


@dataclass(slots=True, eq=False)
class Case:
    """The hardware on all its terms, and the inputs at which it is evaluated.

    specs : one for each of the terms on which the lead hardware is offered
    lead : the machines that weigh most in the cost, which commitments are about
    """

    answer: Assessment
    catalogue: Catalogue | None
    place: Setting
    hardware: str
    choices: tuple[tuple[str, str], ...]
    specs: dict[Acquisition, Spec]
    point: Values
    draws: Values
    memos: dict[tuple[int, bool], Memo] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        """What evaluation needs besides the inputs."""
        return self.place.context

    @property
    def terms(self) -> CostTerms:
        """The terms of the costs."""
        return self.answer.settings.costs

    @property
    def months(self) -> int:
        """The horizon."""
        return self.answer.workload.horizon_months

    def at_point(self, spec: Spec, ctx: Context | None = None) -> Evaluation:
        """A candidate at the likely inputs."""
        of = ctx or self.context
        return evaluate(spec, self.point, of, self.memos.setdefault((id(of), False), {}))

    def drawn(self, spec: Spec, ctx: Context | None = None) -> Evaluation:
        """A candidate at every draw."""
        of = ctx or self.context
        return evaluate(spec, self.draws, of, self.memos.setdefault((id(of), True), {}))

    def flows(
        self, spec: Spec, label: str, ctx: Context | None = None
    ) -> tuple[CashFlow, CashFlow]:
        """The table of a candidate at the likely inputs, and with the amounts of every draw."""
        of = ctx or self.context
        return flow_of(self.at_point(spec, of), of, label), drawn_flow(
            self.drawn(spec, of), of, label
        )

    def lead(self, e: Evaluation) -> Pool:
        """The pool that costs most on demand."""
        return max(e.pools, key=lambda p: float(p.units[0]) * p.unit.prices["on_demand"].likely)

    def standing_in(self, site: Site) -> tuple[Context, Spec] | None:
        """The hardware bought for another place: its context and its candidate."""
        if "buy" not in self.specs:
            return None
        if site is self.terms.site:
            return self.context, self.specs["buy"]
        costs = self.terms.model_copy(update={"site": site})
        moved = self.answer.settings.model_copy(update={"costs": costs})
        place = setting(self.answer.workload, self.catalogue, self.answer.today, moved)
        spec = self.specs["buy"]
        gpu, cpu = _same(spec.gpu, place.gpus), _same(spec.cpu, place.cpus)
        return place.context, replace(spec, gpu=gpu, cpu=cpu)


def case_of(answer: Assessment, catalogue: Catalogue | None, hardware: str, draws: int) -> Case:
    """The case of one hardware of an assessment.

    hardware : its id as in `choices`; empty takes that of the recommendation

    Raises
    ------
    InputError : when the assessment has no such hardware
    """
    place = setting(answer.workload, catalogue, answer.today, answer.settings)
    labels: dict[str, str] = {}
    for option in answer.options:
        labels.setdefault(hardware_id(option.id), option.label.rpartition(", ")[0])
    wanted = hardware or hardware_id(answer.best.id)
    x = place.context.inputs.point()
    found = [
        s
        for s in shortlist(place.context, place.gpus, place.cpus, x, {})
        if hardware_id(s.id) == wanted
    ]
    if wanted not in labels or not found:
        raise InputError(
            f"“{wanted[:60]}” is not among the candidates",
            where="hardware",
            right="one of " + ", ".join(labels),
        )
    one = found[0]
    specs = {
        s.acquisition: s for s in on_all_terms(one.placement, one.stage_hardware, one.gpu, one.cpu)
    }
    return Case(
        answer,
        catalogue,
        place,
        wanted,
        tuple(labels.items()),
        specs,
        x,
        place.context.inputs.draws(draws),
    )


def hardware_id(option_id: str) -> str:
    """What an option's id says of the hardware alone."""
    return option_id.rpartition("/")[0]


def _same(unit: Unit | None, units: list[Unit]) -> Unit | None:
    if unit is None:
        return None
    return next(u for u in units if (u.sku, u.per_machine) == (unit.sku, unit.per_machine))


def used_share(pool: Pool) -> float:
    """Share of the month's hours in which the pool's machines work for the job."""
    return float(np.clip(pool.busy_hours[0] * pool.goodput[0] / 730.0, 0.0, 1.0))
