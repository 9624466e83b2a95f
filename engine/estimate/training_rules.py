"""The articles' rules for training clusters beside what was computed for one job.

The rules are rows of `data/training_rules.csv`, paraphrased, each with its claim and where it
misleads. A rule is shown, never followed; the search decides.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from engine.errors import DataError
from engine.estimate.network_choice import NetworkOutcome
from engine.estimate.search import search
from engine.estimate.search_results import Found, split_words
from engine.estimate.training_calibration import shipped_calibration
from engine.estimate.training_job import Job, NothingFits, PlanResult
from engine.wording import number

FILE = Path(__file__).resolve().parents[2] / "data" / "training_rules.csv"
AS_GOOD = 0.05  # a plan this much slower than the best is as good, within the model's errors


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an article: for models of `from_b` up to `to_b` billion parameters."""

    id: str
    article: str
    claim: str
    from_b: float
    to_b: float
    low: float | None
    high: float | None
    says: str
    misleads: str
    source: str


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """A rule beside what was computed; `agrees` is None where the job does not touch it."""

    rule: Rule
    computed: str
    agrees: bool | None


@cache
def training_rules() -> dict[str, Rule]:
    """The rules by id.

    Raises
    ------
    DataError : a mark is no number
    """
    found = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                from_b, to_b = float(row["from_b"]), float(row["to_b"])
                low, high = (float(row[k]) if row[k] else None for k in ("low", "high"))
            except ValueError:
                raise DataError(
                    "is no number", file=FILE, line=line, column="from_b", right="a number"
                ) from None
            found[row["id"]] = Rule(
                row["id"], row["article"], row["claim"], from_b, to_b, low, high, row["says"],
                row["misleads"], row["source"],
            )  # fmt: skip
    return found


def rules_beside(
    found: Found, best: PlanResult, smallest: PlanResult | None,
    networks: tuple[NetworkOutcome, ...], mix: str,
) -> tuple[RuleAnswer, ...]:  # fmt: skip
    """Every rule that speaks of this job, beside what was computed for it.

    mix : what mixing generations costs here, in words; empty where one kind of GPU is used
    """
    job, rules = found.job, training_rules()
    size = job.shape.total_params / 1e9
    same = _same_age(job, best)
    told = [_split(same, best, rule) for rule in rules.values()
            if rule.id.startswith("split_") and rule.from_b < size <= rule.to_b]  # fmt: skip
    told += [_count(job, best, smallest, rules[name]) for name in _counts_of(job)
             if rules[name].from_b <= size < rules[name].to_b]  # fmt: skip
    told.append(RuleAnswer(rules["never_mix"], mix or "One kind of GPU only.",
                           True if mix else None))  # fmt: skip
    told.append(_pcie(best, networks, rules["never_mix_pcie"], mix))
    told.append(_network(found, best, networks, rules["network_first"]))
    return tuple(told)


def _same_age(job: Job, best: PlanResult) -> Found | None:
    """All plans on the chosen fleet with code of one age: ways to split and not releases differ."""
    year = job.software_year or max(shipped_calibration().newest_years)
    n = best.plan.gpus
    found = search(
        replace(job, choices=(best.choice,), gpus=(n, n), software_year=year,
                batch_seqs=best.plan.global_batch_seqs)
    )  # fmt: skip
    return None if isinstance(found, NothingFits) else found


def _split(found: Found | None, best: PlanResult, rule: Rule) -> RuleAnswer:
    """The rule's way to split against the best of its kind on the same GPUs."""
    chosen = f"Best here on {best.plan.gpus:,} GPUs: {split_words(best.plan)}."
    if found is None:
        return RuleAnswer(rule, chosen, None)
    p = found.plans
    kinds = {
        "split_small": ("data parallelism alone", (p.tp == 1) & (p.pp == 1)),
        "split_tensor": ("tensor parallelism", (p.tp > 1) & (p.pp == 1)),
        "split_pipeline": ("tensor and pipeline parallelism", (p.tp > 1) & (p.pp > 1)),
    }
    name, mask = kinds[rule.id]
    alone = kinds["split_small"][1]
    if not mask.any():
        return RuleAnswer(rule, f"{chosen} No plan with {name} fits.", False)
    top = float(found.days.min())
    slower = float(found.days[mask].min()) / top - 1
    text = f"{chosen} With code of one age the best plan with {name} is {_behind(slower)}"
    if rule.id != "split_small":
        rest = _behind(float(found.days[alone].min()) / top - 1) if alone.any() else "does not fit."
        text += f" Sharded data parallelism alone {'is ' if alone.any() else ''}{rest}"
    return RuleAnswer(rule, text, slower <= AS_GOOD)


def _behind(slower: float) -> str:
    return "the fastest." if slower < 0.001 else f"{slower:.1%} behind the fastest."


def _counts_of(job: Job) -> tuple[str, ...]:
    if job.task == "pretrain":
        return ("gpus_small", "gpus_pretrain", "gpus_large")
    return ("gpus_finetune", "gpus_large")


def _count(job: Job, best: PlanResult, smallest: PlanResult | None, rule: Rule) -> RuleAnswer:
    n = best.plan.gpus
    memory = f"Memory alone asks for {smallest.plan.gpus:,}" if smallest else "Memory decides"
    if job.deadline_days is not None:
        text = f"{memory}; {job.deadline_days:g} days ask for {n:,}."
    else:
        text = f"{memory}; {n:,} take {number(best.days.likely)} days."
    low, high = rule.low or 1, rule.high or float("inf")
    return RuleAnswer(rule, text, low <= n <= high)


def _pcie(
    best: PlanResult, networks: tuple[NetworkOutcome, ...], rule: Rule, mix: str
) -> RuleAnswer:
    """What PCIe inside the machines would do to the job: mixed-in cards pace it as much."""
    kinds = {a.form_factor.upper().startswith("PCI")
             for a in (best.choice.accelerator, *best.choice.also)}  # fmt: skip
    if len(kinds) > 1:
        return RuleAnswer(rule, mix, True)
    slow = next((o.result for o in networks if o.id == "pcie-only"), None)
    if slow is None:
        return RuleAnswer(rule, "One kind of card only.", None)
    longer = slow.days.likely / best.days.likely - 1
    text = f"With PCIe alone inside the machines the job would take {longer:.0%} longer."
    return RuleAnswer(rule, text, longer > AS_GOOD)


def _network(
    found: Found, best: PlanResult, networks: tuple[NetworkOutcome, ...], rule: Rule
) -> RuleAnswer:
    """What the fastest network and what twice the GPUs would do to the days and the cost."""
    between = [o for o in networks if o.result and o.id not in ("pcie-only", "fast-domain")]
    if not between or best.plan.gpus <= best.choice.node:
        return RuleAnswer(rule, "One machine: no network between machines.", None)
    fastest = min(between, key=lambda o: o.result.step_s.likely if o.result else np.inf)
    assert fastest.result is not None
    gain = 1 - fastest.result.days.likely / best.days.likely
    p = found.plans
    more = np.flatnonzero((p.gpus == 2 * best.plan.gpus)
                          & (found.which == found.job.choices.index(best.choice)))  # fmt: skip
    text = f"The fastest network ({fastest.name}) would save {max(gain, 0):.1%} of the time."
    if not len(more):
        return RuleAnswer(rule, text, gain > AS_GOOD)
    i = int(more[np.argmin(found.days[more])])
    dearer = float(found.gpu_hours[i]) / best.gpu_hours.likely - 1
    text += (
        f" Twice the GPUs would save {1 - float(found.days[i]) / best.days.likely:.1%} "
        f"for {dearer:+.1%} GPU hours."
    )
    return RuleAnswer(rule, text, gain > AS_GOOD)
