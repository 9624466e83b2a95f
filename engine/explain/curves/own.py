"""What each question shows of the job itself: rules that apply, and answers for this very job."""

from __future__ import annotations

from engine.assessment import (
    ACQUISITION_LABELS,
    PLACEMENT_LABELS,
    Assessment,
    RuleVerdict,
)
from engine.explain import evidence
from engine.explain.curves.bottleneck import gpu_ceiling
from engine.explain.curves.common import lead_stage, usd
from engine.wording import count

# Which rules of the articles belong to which question.
RULES_AT = {
    "bottleneck": ("two_questions_compute", "io_bound", "memory_bound", "fits_gpu_memory"),
    "failure_mode": ("two_questions_failure", "dont_distribute", "strong_consistency"),
    "parallel_fraction": ("seventy_percent", "waste_gpu"),
    "utilization": (
        "utilization_hardware_low", "rent_below_40", "own_above_50", "build_above_60",
        "utilization_hardware_high", "variation_30", "stable_18_months",
    ),
}  # fmt: skip


def rules_at(question: str, answer: Assessment) -> tuple[list[RuleVerdict], list[str]]:
    """The articles' rules at a question: those that apply with their verdict, then the others."""
    wanted = RULES_AT[question]
    applying = [r for r in answer.rules if r.id in wanted]
    told = {r.id for r in applying}
    texts = evidence.rules()
    return applying, [texts[i].text for i in wanted if i not in told]


def own_answers(question: str, answer: Assessment) -> dict[str, str]:
    """The articles' questions answered for this plan, by the id of `data/faq.csv`.

    What has no answer of its own here (a trend, say) is left to the general one.
    """
    found = {
        "bottleneck": _own_hardware,
        "failure_mode": _own_architecture,
        "parallel_fraction": _own_size,
        "utilization": _own_terms,
    }[question](answer)
    return {id: text[0].upper() + text[1:] for id, text in found.items()}


def _own_hardware(answer: Assessment) -> dict[str, str]:
    best = answer.best
    where = "; ".join(f"{s.stage} on {s.units:,} × {s.name}" for s in best.stages)
    shares = dict(answer.shares)
    found = {
        "003-always-faster": gpu_ceiling(answer.workload).title + ".",
        "001-for-ml": where + ".",
        "000-mistake": f"The network takes {shares.get('network', 0):.0%} of the time here.",
    }
    network = next((s.network for s in best.stages if s.network), "")
    if network:
        found["001-networking"] = f"{network}."
    for name, placement in (("000-without-gpus", "cpu"), ("003-mixing", "hybrid")):
        rival = next((o for o in answer.options if o.placement == placement and not o.vetoes), None)
        ruled = next(
            (v for v in answer.ruled_out if v.rules_out.lower().startswith(placement)), None
        )
        if rival is not None:
            cost = usd(rival.usd_per_month.likely)
            found[name] = f"{rival.label} for {cost} a month, best in {rival.probability_best:.0%}."
        elif ruled is not None:
            found[name] = f"Ruled out: {ruled.reason}."
    return found


def _own_architecture(answer: Assessment) -> dict[str, str]:
    verdict, best = answer.architecture.verdict, answer.best
    machines = sum(s.machines for s in best.stages)
    found = dict.fromkeys(("000-difference", "003-difference"), f"{best.label}. {verdict}")
    found |= dict.fromkeys(("000-without-distribution", "001-is-it"), verdict)
    found["000-kubernetes"] = f"{count(machines, 'machine')} recommended."
    if answer.architecture.remedies:
        remedy, why = answer.architecture.remedies[0]
        found["001-fault"] = f"{remedy}: {why}."
    effort = next((c for c in best.contributions if c.criterion == "effort"), None)
    if effort is not None:
        found["003-hardest"] = f"{effort.because}."
    return found


def _own_size(answer: Assessment) -> dict[str, str]:
    size = f"{answer.best.label}."
    placement = PLACEMENT_LABELS[answer.best.placement]
    chance = dict(answer.placement_probability).get(answer.best.placement, 0.0)
    return {
        "000-gpu-or-cpu": f"{placement}, the best in {chance:.0%} of the cases drawn.",
        **dict.fromkeys(("001-minimum", "003-how-many"), size),
    }


def _own_terms(answer: Assessment) -> dict[str, str]:
    lead, best = lead_stage(answer), answer.best
    terms = f"{ACQUISITION_LABELS[best.acquisition]}, {usd(best.usd_per_month.likely)} a month."
    found = dict.fromkeys(("000-cloud-or-own", "001-cloud-or-own", "003-build-or-rent"), terms)
    if lead.price is not None:
        price = f"{lead.name}: ${lead.price.usd_per_unit_hour:.2f} an hour ({lead.price.provider})."
        found |= dict.fromkeys(("000-rental", "003-rent"), price)
    return found
