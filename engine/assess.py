"""The whole flow on one page: answers → candidates → estimates → costs → decision → explanation.

`assess` is what the page, the PDF, the CSV, the link and the shell call; `assess_point` is the
same without draws, flips and open questions, for a quick look while answers change.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from engine.assessment import Assessment, Option
from engine.catalogue import Catalogue
from engine.decide import score as scoring
from engine.decide.choices import answers_of, open_choices
from engine.decide.context import Setting, setting
from engine.decide.criteria import values
from engine.decide.evaluate import Memo, evaluate
from engine.decide.evaluation import Context, Evaluation
from engine.decide.findings import Findings, make_option, time_of
from engine.decide.guarantees import copies_asked
from engine.decide.inputs import Inputs, dirichlet_weights
from engine.decide.numbers import Array
from engine.decide.sensitivity import Turn, levers, nearest_turns
from engine.decide.service_sizing import spare_rule
from engine.decide.shortlist import shortlist
from engine.decide.uncertainty import Uncertainty, Worth, open_inputs, summarize, worth_of_knowing
from engine.explain.answer import explain
from engine.workload.answers import FailureMode
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import DEFAULT, Workload

DRAWS = 4096
Values = dict[str, Array]


def assess(
    workload: Workload,
    catalogue: Catalogue | None = None,
    *,
    settings: Settings = USUAL,
    today: date | None = None,
    draws: int = DRAWS,
) -> Assessment:
    """The recommendation for a workload with how sure it is and what would change it.

    catalogue : hardware and prices; the shipped tables when omitted
    settings : the terms of the plan pages; those of the costs change what machines cost
    today : the day from which prices' ages are counted
    draws : quasi-random draws, a power of two; 0 for the point alone

    Raises
    ------
    InputError : when no hardware is on offer for the constraints at all
    """
    day = today or date.today()
    place = setting(workload, catalogue, day, settings)
    machines = _Machines()
    evaluations, ranked = _point(place, machines.known(place.context))
    best = int(ranked[:, 0].argmax())
    findings = Findings(place.context, day, evaluations, ranked[:, 0], best, place.notes)
    if draws:
        findings.uncertainty, findings.worths, findings.expected = _uncertainty(
            place, evaluations, best, draws
        )
        findings.choose_expected()
        best = findings.best
        findings.turns = _turns(place, evaluations, best)
        findings.worths += _choices(place, evaluations, best, catalogue, day, machines)
    return explain(findings, _options(findings))


def assess_point(
    workload: Workload,
    catalogue: Catalogue | None = None,
    *,
    settings: Settings = USUAL,
    today: date | None = None,
) -> Assessment:
    """The recommendation at the point values only."""
    return assess(workload, catalogue, settings=settings, today=today, draws=0)


def _point(place: Setting, memo: Memo) -> tuple[list[Evaluation], Array]:
    """Every shortlisted candidate evaluated at the point, and the scores that rank them.

    memo : pools of machines that are known at the point, added to
    """
    context = place.context
    x = context.inputs.point()
    specs = shortlist(context, place.gpus, place.cpus, x, memo)
    evaluations = [evaluate(spec, x, context, memo) for spec in specs]
    return evaluations, _ranked(evaluations, x, context, scoring.weights(context.workload))


def _ranked(evaluations: list[Evaluation], x: Values, context: Context, weight: Array) -> Array:
    """Scores that rank the candidates, shape (candidates, rows of inputs)."""
    score = scoring.scores(values(evaluations, x, context), weight)
    return scoring.ranking_scores(score, evaluations)


def _uncertainty(
    place: Setting, evaluations: list[Evaluation], best: int, draws: int
) -> tuple[Uncertainty, list[Worth], Array]:
    """Probabilities, intervals, the worth of open questions and mean values from the same draws."""
    context = place.context
    x = context.inputs.draws(draws)
    memo: Memo = {}
    drawn = [evaluate(e.spec, x, context, memo) for e in evaluations]
    moved = context.workload.weights != DEFAULT.weights
    weight = dirichlet_weights(context.workload.weights, moved, draws)
    value = values(drawn, x, context)
    ranked = scoring.ranking_scores(scoring.scores(value, weight), drawn)
    times = np.array([time_of(e) for e in drawn])
    groups = [_kind_of(e) for e in evaluations]
    worths = [
        worth_of_knowing(name, x[name], ranked, best, groups)
        for name in open_inputs(context.inputs, context)
    ]
    return summarize(drawn, ranked, times), worths, np.asarray(value.mean(axis=2))


def _turns(place: Setting, evaluations: list[Evaluation], best: int) -> list[Turn]:
    """The nearest value of each numeric answer at which another kind of candidate wins."""
    context = place.context
    weight = scoring.weights(context.workload)
    specs = [e.spec for e in evaluations]
    kinds = [_kind_of(e) for e in evaluations]

    def rank(rows: Values) -> np.ndarray:
        memo: Memo = {}
        moved = [evaluate(spec, rows, context, memo) for spec in specs]
        return scoring.winners(_ranked(moved, rows, context, weight))

    return nearest_turns(
        levers(context.workload, context.inputs),
        context.inputs.point(),
        rank,
        lambda i: kinds[i] == kinds[best],
    )


def _choices(
    place: Setting,
    evaluations: list[Evaluation],
    best: int,
    catalogue: Catalogue | None,
    day: date,
    machines: _Machines,
) -> list[Worth]:
    """What the open choices are worth: every answer is tried in turn, all counted as likely."""
    workload = place.context.workload
    kind = _kind_of(evaluations[best])
    found = []
    for field in open_choices(workload):
        changes, gains = 0, []
        options = answers_of(field)
        for answer in options:
            told = workload.model_copy(update={field: answer})
            other = setting(told, catalogue, day, place.context.settings)
            tried, ranked = _point(other, machines.known(other.context))
            winner = int(ranked[:, 0].argmax())
            same = [i for i, e in enumerate(tried) if _kind_of(e) == kind]
            stay = max((float(ranked[i, 0]) for i in same), default=float(ranked.min()))
            changes += _kind_of(tried[winner]) != kind
            gains.append(max(float(ranked[winner, 0]) - max(stay, 0.0), 0.0))
        found.append(Worth(field, changes / len(options), sum(gains) / len(options)))
    return found


class _Machines:
    """Pools of machines at the point, by what sizes and prices of one job depend on.

    An answer to an open choice often changes what is asked of machines and not the machines: a
    rewrite none of them, the worst failure the spares and copies of a service alone.
    """

    def __init__(self) -> None:
        self._found: list[tuple[Inputs, tuple[object, ...], Memo]] = []

    def known(self, context: Context) -> Memo:
        """The pools that a context shares with those before it, to be added to."""
        workload, terms = context.workload, context.settings.architecture
        # All through which the worst failure reaches a pool, see `service_sizing.spare_units`.
        lost = workload.failure_mode is FailureMode.data_loss
        spares = (spare_rule(workload), copies_asked(workload, terms).copies, lost)
        for inputs, others, memo in self._found:
            if others == spares and inputs == context.inputs:
                return memo
        memo = {}
        self._found.append((context.inputs, spares, memo))
        return memo


def _kind_of(e: Evaluation) -> tuple[str, ...]:
    """What counts as another recommendation: placement and terms."""
    return (e.spec.placement, e.spec.acquisition)


def _options(findings: Findings) -> list[Option]:
    """Options in the order of their rank, with probabilities."""
    order = np.argsort(-findings.ranked, kind="stable")
    return [make_option(findings, int(i)) for i in order]
