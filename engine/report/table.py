"""Every figure of an answer in one tidy table, and that table as CSV, XLSX, JSON and plain text.

Words stand in `item`, numbers in `low`, `likely` and `high`: those three columns hold nothing else.
Cells of words that a spreadsheet would take for a formula are made harmless.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from typing import Any

import numpy as np
from pydantic import BaseModel

from engine.assessment import (
    PLACEMENT_LABELS,
    Assessment,
    Contribution,
    Flip,
    Option,
    PriceRef,
    Question,
    Reason,
    StagePlan,
)
from engine.estimate.estimate import Estimate
from engine.report import words
from engine.report.link import query_string
from engine.workload.answers import RESOURCES
from engine.workload.settings import Settings
from engine.workload.terms import Terms
from engine.workload.workload import DEFAULT, Workload, field_unit

JSON_VERSION = 1
COLUMNS = ("section", "item", "low", "likely", "high", "unit", "source")
POINTS = "points of 100"
TEXT_WIDTH, TEXT_OPTIONS = 100, 10
# A cell that begins so is a formula to one spreadsheet or another; full-width signs are to some.
_FORMULA = re.compile(r"^\s*[=+\-@\t\r＝＋－＠]")
# Where commas are decimal signs a spreadsheet splits at semicolons, and a new cell begins.
_INNER = re.compile(r"(;)(?=[=+\-@])")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Numbers are in `unit`; `low` and `high` bound 8 of 10 cases."""

    section: str
    item: str
    low: float | None = None
    likely: float | None = None
    high: float | None = None
    unit: str = ""
    source: str = ""


def rows(answer: Assessment, link: str = "") -> list[Row]:
    """The whole answer as rows, in the order of the report; the link last when one is given."""
    found = [
        *_recommendation(answer),
        *_stages("Hardware", answer.best),
        *_options(answer),
        *_ruled_out(answer),
        *_reasons(answer),
        *_rules(answer),
        *_flips(answer),
        *_questions(answer),
        *_assumptions(answer),
        *_architecture(answer),
        *_shares(answer),
        *_prices(answer.price_alternatives),
        *(Row("Warnings", text) for text in answer.warnings),
        *answer_rows(answer.workload),
        *term_rows(answer.settings),
    ]
    return [*found, Row("Link", link)] if link else found


def to_csv(answer: Assessment, link: str = "") -> bytes:
    """The table as CSV for a spreadsheet; see `csv_of`."""
    return csv_of(rows(answer, link))


def csv_of(lines: Iterable[Row]) -> bytes:
    """Rows as CSV: UTF-8 with its mark, lines ended by CR LF, words harmless."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in lines:
        writer.writerow([csv_cell(value) for value in dataclasses.astuple(row)])
    return text.getvalue().encode("utf-8-sig")


def range_row(section: str, item: str, low: float, likely: float, high: float, unit: str,
              source: str) -> Row:  # fmt: skip
    """An input with its range and source."""
    return Row(section, item.replace("_", " "), low, likely, high, unit, source)


def to_xlsx(answer: Assessment, link: str = "") -> bytes:
    """The table as a workbook: the header stays in view, words are never formulae."""
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font

    book = Workbook()
    book.properties.creator = "ClusterFit"
    book.properties.title = f"ClusterFit: {words.one_line(answer.sentence)}"
    book.properties.created = datetime.combine(answer.today, time())
    sheet = book.active
    if sheet is None:  # pragma: no cover - a new workbook has a sheet
        sheet = book.create_sheet()
    sheet.title = "Answer"
    lines: list[tuple[Any, ...]] = [COLUMNS, *map(dataclasses.astuple, rows(answer, link))]
    for at, line in enumerate(lines, 1):
        for column, value in enumerate(line, 1):
            if value is None or value == "":
                continue
            cell = sheet.cell(at, column)
            if isinstance(value, str):
                text = words.one_line(value)
                cell.value = text
                cell.data_type = "s"
                # The spreadsheet's own mark for words; they stay words when the cell is edited.
                cell.quotePrefix = bool(_FORMULA.match(text))
                cell.alignment = Alignment(wrap_text=True, vertical="top")
            else:
                cell.value = value
                cell.number_format = "#,##0.###"
                cell.alignment = Alignment(vertical="top")
            if at == 1:
                cell.font = Font(bold=True)
    for letter, width in zip("ABCDEFG", (18, 70, 14, 14, 14, 18, 46), strict=True):
        sheet.column_dimensions[letter].width = width
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = f"A1:G{len(lines)}"
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def to_json(answer: Assessment) -> dict[str, Any]:
    """The whole answer as plain values; `version` changes when a name changes its meaning."""
    found = plain(answer)
    best = found.pop("best")
    return {
        "schema": "clusterfit/assessment",
        "version": JSON_VERSION,
        "today": found.pop("today"),
        "link": query_string(answer.workload, settings=answer.settings),
        "recommendation": {
            "sentence": found.pop("sentence"),
            "sureness": found.pop("sureness"),
            **best,
        },
        **found,
    }


def to_text(answer: Assessment) -> str:
    """The answer for a shell: what to do, what it costs, how sure, why, what would change it."""
    best = answer.best
    lines = [*wrapped(answer.sentence, "", ""), f"{answer.sureness}.", ""]
    lines += [f"Cost   {words.likely(best.usd_per_month)} ({words.interval(best.usd_per_month)})"]
    lines += [f"Time   {words.likely(best.time)} ({words.interval(best.time)}); {best.time_label}"]
    lines += block("Why", [_told(r) for r in answer.reasons_for])
    lines += block("Against", [_told(answer.reason_against)] if answer.reason_against else [])
    lines += ["", "Options", *_option_table(answer.options)]
    lines += block("Ruled out", [f"{v.rules_out}: {v.reason}" for v in answer.ruled_out])
    lines += block("What would change it", _turns(answer.flips))
    lines += block(
        "Ask this next",
        [
            f"{q.title}: changes the answer in {words.percent(q.chance_it_changes)} of cases, "
            f"worth {words.money(q.worth_usd_per_month)} a month"
            for q in worth_asking(answer)[:3]
        ],
    )
    lines += block("Architecture", [answer.architecture.verdict])
    lines += block("Mind", list(answer.warnings))
    lines += ["", f"As of {words.day(answer.today)}. Ranges hold in 8 of 10 cases."]
    return "\n".join(lines) + "\n"


def worth_asking(answer: Assessment) -> list[Question]:
    """Open answers that could change the choice; the table alone lists the others too."""
    return [q for q in answer.next_questions if q.chance_it_changes >= 0.005]


# --- rows


def row_of(estimate: Estimate, section: str, item: str, source: str = "") -> Row:
    """An estimate as a row."""
    given = source or "; ".join(estimate.sources)
    return Row(section, item, estimate.low, estimate.likely, estimate.high, estimate.unit, given)


def _recommendation(answer: Assessment) -> Iterator[Row]:
    section, best = "Recommendation", answer.best
    yield Row(section, answer.sentence)
    yield Row(section, answer.sureness, source=f"{answer.draws:,} draws" if answer.draws else "")
    yield Row(section, f"As of {answer.today.isoformat()}")
    yield row_of(best.usd_per_month, section, "Cost a month")
    if best.usd_per_useful_hour is not None:
        yield row_of(best.usd_per_useful_hour, section, "Cost of a useful hour")
    yield row_of(best.time, section, best.time_label)
    for place, share in answer.placement_probability:
        name = PLACEMENT_LABELS.get(place, place)
        yield Row(section, f"{name} comes out best", likely=share * 100, unit="% of draws")


def _stages(section: str, option: Option, prefix: str = "") -> Iterator[Row]:
    for stage in option.stages:
        yield from _stage(section, stage, f"{prefix}{stage.stage}: {stage.name}")


def _stage(section: str, stage: StagePlan, head: str) -> Iterator[Row]:
    unit = "GPUs" if stage.hardware == "gpu" else "CPU servers"
    how = ", ".join(x for x in (stage.network, words.terms(stage.acquisition), stage.note) if x)
    yield Row(section, f"{head}, {how}", likely=stage.units, unit=unit)
    yield Row(section, f"{head}, machines", likely=stage.machines, unit="machines")
    yield row_of(stage.usd_per_month, section, f"{head}, cost a month")
    yield Row(section, f"{head}, busy", likely=stage.busy_hours_per_month, unit="h/month")
    yield Row(section, f"{head}, utilization", likely=stage.utilization * 100, unit="%")
    if stage.price is not None:
        yield from price_rows(section, stage.price, f"{head}, price: ")


def price_rows(section: str, price: PriceRef, prefix: str = "") -> Iterator[Row]:
    """A price with its terms, region and source, and the day on which it was read."""
    head = f"{prefix}{price.provider} {price.sku}, {words.terms(price.acquisition)}"
    head += f", {price.region}" if price.region else ""
    source = f"{price.source} ({price.confidence})" if price.confidence else price.source
    yield Row(section, head, likely=price.usd_per_unit_hour, unit="USD/unit-hour", source=source)
    when = f"{head}: read on {price.as_of.isoformat()}"
    yield Row(section, when, likely=price.age_days, unit="days old", source=source)


def _prices(prices: Iterable[PriceRef]) -> Iterator[Row]:
    for price in prices:
        yield from price_rows("Price alternatives", price)


def _options(answer: Assessment) -> Iterator[Row]:
    for rank, option in enumerate(answer.options, 1):
        yield from _option(option, f"{rank} · {option.label} · ")


def _option(option: Option, head: str) -> Iterator[Row]:
    section = "Options"
    what = f"{words.placement(option)}, {words.scale(option)}, {words.terms(option.acquisition)}"
    yield Row(section, f"{head}{what}", likely=option.units, unit="GPUs and servers")
    yield row_of(option.usd_per_month, section, f"{head}Cost a month")
    if option.usd_per_useful_hour is not None:
        yield row_of(option.usd_per_useful_hour, section, f"{head}Cost of a useful hour")
    yield row_of(option.time, section, f"{head}{option.time_label}")
    yield Row(section, f"{head}Score", likely=option.score * 100, unit=POINTS)
    for c in option.contributions:
        item = f"{head}{c.title}: {c.because}"
        yield Row(section, item, likely=c.points * 100, unit=POINTS, source=c.source)
        yield Row(section, f"{head}{c.title}, weight", likely=c.weight * 100, unit="%")
        yield Row(section, f"{head}{c.title}, value", likely=c.value * 100, unit="% of the best")
    chance = option.probability_best * 100
    yield Row(section, f"{head}Comes out best", likely=chance, unit="% of draws")
    regret = option.regret_usd_per_month
    yield Row(section, f"{head}Expected regret", likely=regret, unit="USD/month")
    for veto in option.vetoes:
        yield Row(section, f"{head}Ruled out: {veto.reason}", source=veto.source)
    yield from _stages(section, option, head)


def _ruled_out(answer: Assessment) -> Iterator[Row]:
    for veto in answer.ruled_out:
        yield Row("Ruled out", f"{veto.rules_out}: {veto.reason}", source=veto.source)


def _reasons(answer: Assessment) -> Iterator[Row]:
    for reason in answer.reasons_for:
        yield _reason("Reasons for", reason)
    if answer.reason_against is not None:
        yield _reason("Reason against", answer.reason_against)


def _reason(section: str, reason: Reason) -> Row:
    """The points stand there only where they are part of the score."""
    if not reason.counted:
        return Row(section, reason.text, source=reason.source)
    return Row(section, reason.text, None, reason.points * 100, None, POINTS, reason.source)


def _rules(answer: Assessment) -> Iterator[Row]:
    for rule in answer.rules:
        agrees = {True: "agrees", False: "disagrees", None: "does not apply"}[rule.agrees]
        item = f"{rule.id} {rule.rule}: {agrees}; rule says {rule.says}, model says "
        item += f"{rule.model_says}; follows {rule.follows}: {rule.why}"
        article = f"article {rule.article}" if rule.article.isdigit() else rule.article
        yield Row("Rules of the articles", item, source=article)


def _flips(answer: Assessment) -> Iterator[Row]:
    for flip in answer.flips:
        section = "What would change it"
        yield Row(section, f"{flip.title}, now", likely=flip.now, unit=flip.unit)
        item = f"{flip.title}, from here on: {flip.becomes}"
        yield Row(section, item, likely=flip.at, unit=flip.unit)


def _questions(answer: Assessment) -> Iterator[Row]:
    for question in answer.next_questions:
        section, chance = "Ask this next", question.chance_it_changes * 100
        yield Row(
            section, f"{question.title}, changes the answer", likely=chance, unit="% of draws"
        )
        worth = question.worth_usd_per_month
        yield Row(section, f"{question.title}, worth of knowing", likely=worth, unit="USD/month")


def _assumptions(answer: Assessment) -> Iterator[Row]:
    for given in answer.assumptions:
        item = f"{given.title} ({_basis(given.answered, given.certainty)})"
        yield row_of(given.estimate, "Assumptions", item, given.source)


def _shares(answer: Assessment) -> Iterator[Row]:
    for resource, share in answer.shares:
        yield Row("Time by resource", resource.replace("_", " "), likely=share * 100, unit="%")


def _basis(answered: bool, certainty: str) -> str:
    return f"answered, {certainty}" if answered else certainty or "assumed"


def _architecture(answer: Assessment) -> Iterator[Row]:
    section, plan = "Architecture", answer.architecture
    kind = "A distributed system" if plan.distributed else "No distributed system"
    yield Row(section, f"{kind}: {plan.verdict}")
    for title, text in plan.remedies:
        yield Row(section, f"{title}: {text}")
    if plan.diagram:
        yield Row(section, plan.diagram)


def answer_rows(workload: Workload) -> Iterator[Row]:
    """What was answered; all else is at its default."""
    for name, info in Workload.model_fields.items():
        value = getattr(workload, name)
        if value != getattr(DEFAULT, name):
            yield from _answer(name, str(info.title), value)


def term_rows(settings: Settings) -> Iterator[Row]:
    """The terms of the plan pages that differ from the usual ones."""
    for page in Settings.model_fields:
        terms: Terms = getattr(settings, page)
        usual = type(terms)()
        for name in type(terms).model_fields:
            value = getattr(terms, name)
            if value == getattr(usual, name):
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            said = terms.title(name) if number else f"{terms.title(name)}: {_in_words(value)}"
            yield Row(
                f"Terms: {page}",
                said,
                likely=float(value) if number else None,
                unit=terms.unit(name),
                source="your answer",
            )


def _in_words(value: Any) -> str:
    """A choice, a day or a list of a term."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(words.number(item, digits=6) for item in value)
    return str(value).replace("_", " ")


def _answer(name: str, title: str, value: Any) -> Iterator[Row]:
    section, unit = "Answers", field_unit(name)
    if name == "timings":
        for machines, hours in value:
            item = f"{title}: on {words.number(machines, digits=6)} machines"
            yield Row(section, item, likely=hours, unit="h", source="your answer")
    elif name == "time_shares":
        for resource, share in zip(RESOURCES, value, strict=True):
            item = f"{title}: {resource.value.replace('_', ' ')}"
            yield Row(section, item, likely=share, unit=unit, source="your answer")
    elif isinstance(value, tuple):
        for part in value:
            text = words.choice(part) if isinstance(part, StrEnum) else part
            yield Row(section, f"{title}: {text}", source="your answer")
    elif isinstance(value, bool):
        yield Row(section, f"{title}: {'yes' if value else 'no'}", source="your answer")
    elif isinstance(value, int | float):
        yield Row(section, title, likely=value, unit=unit, source="your answer")
    else:
        text = words.choice(value) if isinstance(value, StrEnum) else value
        yield Row(section, f"{title}: {text}", source="your answer")


# --- cells


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula; an apostrophe marks what looked like one."""
    line = _INNER.sub(r"\1'", words.one_line(text))
    return f"'{line}" if _FORMULA.match(line) else line


def csv_cell(value: Any, digits: int = 12) -> str:
    """A value as the text of a cell: nothing for None, harmless words, plain numbers.

    digits : significant ones. Twelve let sums agree to 1e-9, and 0.55 × 100 is 55.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return harmless(value)
    return f"{value:.{digits}g}"


# --- JSON


def plain(value: Any) -> Any:
    """Dataclasses and models as dictionaries, dates as ISO text, tuples as lists."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {**found, "points": value.points} if isinstance(value, Contribution) else found
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray | np.floating):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# --- plain text


def wrapped(text: str, first: str, rest: str) -> list[str]:
    """A text as lines of a shell's width; `first` and `rest` begin them."""
    return textwrap.wrap(
        words.one_line(text), TEXT_WIDTH, initial_indent=first, subsequent_indent=rest
    )


def block(title: str, texts: list[str]) -> list[str]:
    """A title with a list below it; nothing when the list is empty."""
    lines = [line for text in texts for line in wrapped(text, "  - ", "    ")]
    return ["", title, *lines] if lines else []


def _told(reason: Reason) -> str:
    return f"{reason.text} [{reason.source}]" if reason.source else reason.text


def _turns(flips: tuple[Flip, ...]) -> list[str]:
    """The values at which the answer turns, then in one line what turns nothing."""
    turns = [
        f"{f.title} at {words.quantity(f.at, f.unit)} ({words.quantity(f.now, f.unit)} now): "
        f"{f.becomes}"
        for f in flips
        if f.at is not None
    ]
    steady = [f.title for f in flips if f.at is None]
    return turns + ([f"nothing in the whole range of: {'; '.join(steady)}"] if steady else [])


def _option_table(options: tuple[Option, ...]) -> list[str]:
    """The best options, one a line, and how many there are beside them."""
    shown = options[:TEXT_OPTIONS]
    width = max(len(words.one_line(o.label)) for o in shown)
    lines = []
    for o in shown:
        end = "ruled out" if o.vetoes else f"best in {words.percent(o.probability_best)}"
        cost = f"{words.money(o.usd_per_month.likely)} a month"
        label = words.one_line(o.label)
        lines.append(f"  {label:<{width}}  {cost:>16}  {o.score * 100:3.0f} points  {end}")
    more = len(options) - len(shown)
    return [*lines, f"  and {more} more; csv, xlsx and json have them all"] if more else lines
