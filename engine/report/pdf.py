"""The report for the meeting: an answer as a tagged PDF with vector pictures.

Everything that is computed or worded is prepared here and handed to `data/report.typ` as JSON, so
no text of a user is ever read as markup. The same answer gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from engine.assessment import (
    PLACEMENT_LABELS,
    Assessment,
    Flip,
    Option,
    PriceRef,
    Reason,
    RuleVerdict,
    StagePlan,
)
from engine.costing.model import CostReport
from engine.errors import ClusterFitError
from engine.estimate.estimate import Estimate
from engine.explain.services_report import services_report
from engine.explain.services_svg import svg
from engine.report import charts as pictures
from engine.report import words
from engine.report.costs_pdf import section
from engine.report.table import rows, worth_asking
from engine.workload.answers import KIND_LABELS

TEMPLATE = Path(__file__).resolve().parents[2] / "data" / "report.typ"
MOST_OPTIONS = 12
# Tagged and checked for readers who can't see it; without the check when a glyph is in no font.
Cite = Callable[[str], int]
Standard = Literal["ua-1", "1.7"]
BEST_STANDARD: Standard = "ua-1"
FALLBACK_STANDARD: Standard = "1.7"


def pdf(
    answer: Assessment,
    link: str = "",
    *,
    charts: Mapping[str, dict[str, Any]] | None = None,
    costs: CostReport | None = None,
) -> bytes:
    """The report as PDF.

    link : the address that opens the answer; left out when empty
    charts : further charts as Vega-Lite specifications by their caption
    costs : every way to pay for one hardware of the answer, for a section of its own
    """
    return compiled(TEMPLATE, report(answer, link, charts or {}, costs))


def compiled(template: Path, data: dict[str, Any]) -> bytes:
    """A template filled, checked for accessibility; without the check where a glyph is in no font.

    data : words and pictures; `warnings` is the list that is told at the head
    """
    try:
        return _compile(data, BEST_STANDARD, template)
    except RuntimeError as error:
        if "PDF/UA" not in str(error):
            raise
    told = [*data["warnings"], "Some characters of a name are in none of the fonts of this report."]
    return _compile({**data, "warnings": told}, FALLBACK_STANDARD, template)


def _compile(data: dict[str, Any], standard: Standard, template: Path = TEMPLATE) -> bytes:
    import typst

    made: bytes = typst.compile(
        str(template),
        format="pdf",
        font_paths=[str(pictures.FONTS)],
        ignore_system_fonts=True,
        pdf_standards=[standard],
        sys_inputs={"data": json.dumps(data, ensure_ascii=False)},
    )
    return made


def report(
    answer: Assessment,
    link: str,
    extra: Mapping[str, dict[str, Any]],
    costs: CostReport | None = None,
) -> dict[str, Any]:
    """What the template shows: words, and charts as SVG with the text that stands in for them."""
    best, workload = answer.best, answer.workload
    sources = _sources(answer, costs)

    def cite(source: str) -> int:
        """Number of a source in the list at the end; 0 when there is none."""
        line = words.one_line(source)
        return sources.index(line) + 1 if line else 0

    return {
        "name": words.one_line(workload.name) or "Your job",
        "kind": KIND_LABELS[workload.kind],
        "title": words.one_line(workload.name) or KIND_LABELS[workload.kind],
        "day": words.day(answer.today),
        "date": [answer.today.year, answer.today.month, answer.today.day],
        "colour": pictures.PLACEMENT_COLOURS[words.placement(best)],
        "sentence": words.one_line(answer.sentence),
        "sureness": words.one_line(answer.sureness),
        "figures": _figures(answer),
        "for": [_reason(r, cite) for r in answer.reasons_for],
        "against": [_reason(r, cite) for r in [answer.reason_against] if r is not None],
        "warnings": [words.one_line(text) for text in answer.warnings],
        "stages": [_stage(stage) for stage in best.stages],
        "options": [_option(i, o) for i, o in enumerate(answer.options[:MOST_OPTIONS], 1)],
        "more_options": max(0, len(answer.options) - MOST_OPTIONS),
        "charts": _charts(answer, extra),
        "costs": section(costs, answer, cite) if costs else None,
        "ruled_out": [[*_clean(v.rules_out, v.reason), cite(v.source)] for v in answer.ruled_out],
        "flips": [_flip(f) for f in answer.flips if f.at is not None],
        "steady": "; ".join(
            f"{f.title} ({words.quantity(f.now, f.unit)})" for f in answer.flips if f.at is None
        ),
        "questions": [
            _clean(
                q.title,
                words.percent(q.chance_it_changes),
                f"{words.money(q.worth_usd_per_month)} a month",
            )
            for q in worth_asking(answer)
        ],
        "rules": _rules(answer),
        "agreeing": sum(rule.agrees is True for rule in answer.rules),
        "architecture": {
            "verdict": words.one_line(answer.architecture.verdict),
            "remedies": [_clean(*pair) for pair in answer.architecture.remedies],
            "diagram": words.one_line(answer.architecture.diagram),
            "drawing": _drawing(answer),
        },
        "prices": _prices(answer, cite),
        "assumptions": [
            [
                *_clean(a.title, words.likely(a.estimate), words.interval(a.estimate)),
                "answered" if a.answered else a.certainty or "assumed",
                cite(a.source),
            ]
            for a in answer.assumptions
        ],
        "answers": _answers(answer),
        "sources": sources,
        "draws": f"{answer.draws:,}" if answer.draws else "",
        "link": link,
        "link_pieces": re.findall(r"[?&]?[^?&]{1,60}|[?&]", link),
        # An answer with little to show keeps its grounds on a page of their own.
        "thin": not (answer.flips or answer.rules or answer.assumptions),
    }


# --- parts


def _clean(*texts: str) -> list[str]:
    return [words.one_line(text) for text in texts]


def _figures(answer: Assessment) -> list[list[str]]:
    """The figures at the head: name, value, range."""
    best = answer.best
    money = best.usd_per_month
    found = [
        ["Cost a month", words.money(money.likely), _range(money)],
        [words.one_line(best.time_label), words.likely(best.time), words.interval(best.time)],
    ]
    share = dict(answer.placement_probability).get(best.placement)
    if share is not None and answer.draws:
        draws = f"of {answer.draws:,} draws: {PLACEMENT_LABELS[best.placement]} is best"
        found.append(["How sure", words.percent(share), draws])
    hour = best.usd_per_useful_hour
    if hour is not None:
        found.append(["Cost of a useful hour", words.money(hour.likely), _range(hour)])
    return found


def _range(money: Estimate) -> str:
    if words.rounded(money.low) == words.rounded(money.high):
        return "known exactly"
    return f"{words.money(money.low)} to {words.money(money.high)}"


def _reason(reason: Reason, cite: Cite) -> list[Any]:
    return [words.one_line(reason.text), cite(reason.source)]


def _stage(stage: StagePlan) -> list[str]:
    unit = "GPU" if stage.hardware == "gpu" else "CPU server"
    many = f"{stage.units:,} {unit}{'s' if stage.units != 1 else ''}"
    if stage.hardware == "gpu" and stage.machines:
        many += f" in {stage.machines:,} machine{'s' if stage.machines != 1 else ''}"
    return _clean(
        stage.stage,
        f"{stage.name}{': ' + stage.note if stage.note else ''}",
        many,
        stage.network or "–",
        words.terms(stage.acquisition),
        words.percent(stage.utilization),
        words.money(stage.usd_per_month.likely),
    )


def _option(rank: int, option: Option) -> list[str]:
    verdict = words.percent(option.probability_best)
    return _clean(
        str(rank),
        option.label,
        words.placement(option),
        words.money(option.usd_per_month.likely),
        _range(option.usd_per_month),
        words.likely(option.time),
        f"{option.score * 100:.0f}",
        "ruled out" if option.vetoes else verdict,
        pictures.PLACEMENT_COLOURS[words.placement(option)],
    )


def _flip(flip: Flip) -> list[str]:
    at = "" if flip.at is None else words.quantity(flip.at, flip.unit)
    return _clean(flip.title, words.quantity(flip.now, flip.unit), at, flip.becomes)


def _rules(answer: Assessment) -> list[list[str]]:
    """Rules that the model contradicts."""
    return [
        _clean(_rule(r), _says(r.says), _says(r.model_says), f"{r.follows}: {r.why}")
        for r in answer.rules
        if r.agrees is False
    ]


def _rule(rule: RuleVerdict) -> str:
    article = f"article {rule.article}" if rule.article.isdigit() else rule.article
    return f"{rule.rule} ({article})" if article else rule.rule


def _says(text: str) -> str:
    return PLACEMENT_LABELS.get(text, text)


def _prices(answer: Assessment, cite: Cite) -> list[list[Any]]:
    """The prices that the recommendation rests on, then the alternatives; each once."""
    used = [stage.price for stage in answer.best.stages if stage.price is not None]
    found: dict[PriceRef, list[Any]] = {}
    for price in [*used, *answer.price_alternatives]:
        found.setdefault(price, [*_price(price, price in used), cite(price.source)])
    return list(found.values())


def _price(price: PriceRef, used: bool) -> list[str]:
    return _clean(
        f"{price.provider} {price.sku}",
        ", ".join(x for x in (words.terms(price.acquisition), price.region) if x),
        words.money(price.usd_per_unit_hour),
        f"{words.day(price.as_of)}, {words.age(price.age_days)}",
        price.freshness,
        price.confidence,
        "used" if used else "",
    )


def _drawing(answer: Assessment) -> dict[str, str] | None:
    """The architecture of a service as it is drawn on its page; None where there is none."""
    try:
        report = services_report(answer)
    except ClusterFitError:
        return None  # no server holds what can't be split: the verdict says so
    drawing, sizing = report.drawing, report.sizing
    if drawing is None or sizing is None:
        return None
    servers = f"{sizing.fleet.machines:,} × {sizing.fleet.name}"
    told = (
        f"Drawn with the recommendation's servers, {servers}."
        if sizing.recommended
        else f"The servers are those that would take the place of its GPUs: {servers}."
    )
    return {
        "svg": svg(drawing),
        "title": words.one_line(drawing.title),
        "alt": words.one_line(drawing.alt),
        "caption": words.one_line(f"{drawing.message} {told}"),
    }


def _answers(answer: Assessment) -> list[list[str]]:
    """What was answered, as the table has it: words in one column, figures in the other."""
    found = []
    for row in rows(answer):
        if row.section != "Answers":
            continue
        if row.likely is not None:
            found.append(_clean(row.item, words.number(row.likely, row.unit, digits=6)))
        else:
            title, _, text = row.item.partition(": ")
            found.append(_clean(title, text))
    return found


def _sources(answer: Assessment, costs: CostReport | None) -> list[str]:
    """Every source that the answer names, in the order of its first use."""
    best = answer.best
    estimates = [best.usd_per_month, best.time, *(s.usd_per_month for s in best.stages)]
    named = [source for e in estimates for source in e.sources]
    named += [s.price.source for s in best.stages if s.price is not None]
    named += [r.source for r in answer.reasons_for]
    named += [r.source for r in [answer.reason_against] if r is not None]
    named += [c.source for c in best.contributions]
    named += [v.source for v in answer.ruled_out]
    named += [a.source for a in answer.assumptions]
    named += [p.source for p in answer.price_alternatives]
    named += [p.source for p in costs.prices] if costs else []
    return list(dict.fromkeys(words.one_line(source) for source in named if source))


# --- charts


def _charts(answer: Assessment, extra: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cost": _chart(pictures.cost_chart(answer.options), _told_costs(answer.options)),
        "extra": [
            {**_chart(spec, caption), "caption": words.one_line(caption)}
            for caption, spec in extra.items()
        ],
    }
    if any(option.contributions for option in answer.options):
        found["score"] = _chart(pictures.score_chart(answer.options), _told_scores(answer.options))
    if answer.shares:
        told = ", ".join(f"{n.replace('_', ' ')} {words.percent(x)}" for n, x in answer.shares)
        found["shares"] = _chart(pictures.shares_chart(answer.shares), f"Share of the time: {told}")
    return found


def _chart(spec: dict[str, Any], told: str) -> dict[str, str]:
    return {"svg": pictures.to_svg(spec), "alt": words.one_line(told)}


def _told_costs(options: Iterable[Option]) -> str:
    told = (
        f"{o.label} {words.money(o.usd_per_month.likely)} ({_range(o.usd_per_month)})"
        for o in options
    )
    return "Cost a month of each option with its range: " + "; ".join(told)


def _told_scores(options: Iterable[Option]) -> str:
    told = (f"{o.label} {o.score * 100:.0f}" for o in options)
    return "Score of each option, made up of the criteria, of 100 points: " + "; ".join(told)
