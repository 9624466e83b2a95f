"""Options A, B and C as a page shows them: as written, on equal work, and the prices behind them.

Texts only; a verdict comes with its tone, which the page draws as a chip. US dollars throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.parameters import cost_parameters, value
from engine.cost.worked_cases import WorkedCase
from engine.cost.worked_cases.case import GPUS_PER_NODE
from engine.costing.equal_work import EqualWork, OptionOnWork, Seen, Verdict
from engine.wording import count, day, money, number

Tone = Literal["green", "orange", "red"]
VERDICTS: dict[Verdict, tuple[Tone, str]] = {
    "fits": ("green", "fits"),
    "too_small": ("red", "does not fit"),
    "late": ("orange", "misses the deadline"),
}
OPTIONS = ("A", "B", "C")


@dataclass(frozen=True, slots=True)
class Chip:
    """A verdict: its colour, its words, and why."""

    option: str
    tone: Tone
    text: str
    reason: str


def written_rows(case: WorkedCase, equal: EqualWork) -> list[dict[str, str]]:
    """The options as the article writes them, and what its money buys at its own prices."""
    fleet = _tokens(case.row("A, tokens, fleet reading").corrected)
    instance = _tokens(case.row("A, tokens, instance reading").corrected)
    b = _tokens(case.row("B, tokens at 40% of peak").corrected)
    life = value("resale_spread_months")
    owned_hours = life * HOURS_PER_MONTH * GPUS_PER_NODE
    owned = owned_hours / equal.gpu_hours * equal.work.tokens / 1e12
    serving = f"{money(value('option_a_serving_usd'))} a month"
    return [
        _row(
            "Hardware",
            "64 B200 as eight p5.48xlarge at AWS",
            "Eight B200 at Lambda",
            "One DGX B200, bought",
        ),
        _row(
            "Price",
            f"{money(value('option_a_usd_hour'))} an hour, reserved for three months",
            f"{money(value('case47_option_b_usd'))} a month, three months at least",
            money(value("case47_purchase_usd")),
        ),
        _row(
            "Training a 70B from scratch",
            money(value("option_a_usd")),
            f"{money(value('option_b_written_usd'))} over "
            f"{number(value('case47_option_b_months'))} months",
            f"{money(value('case47_option_c_running_usd'))} a month, electricity and cooling",
        ),
        _row(
            "Serving a million requests a day",
            serving,
            serving,
            f"{money(value('option_c_depreciation_usd'))} a month over {number(life)} months, "
            "and power",
        ),
        _row(
            "Tokens that this trains",
            f"{instance} or {fleet}, by the reading of the price",
            b,
            f"{_tokens(owned)} in {number(life)} months",
        ),
    ]


def written_chips(case: WorkedCase) -> list[Chip]:
    """What is to be said of each option as written."""
    fleet, instance = (
        f"${case.row(f'A, if 38.40 is for {whom}').corrected:.2f}"
        for whom in ("the fleet", "an instance")
    )
    return [
        Chip(
            "A", "red", "can't be ordered",
            "a p5.48xlarge holds H100, AWS sells no three-month reservation, and the price is "
            f"{fleet} or {instance} a GPU-hour: the text does not say whether it is for all or one",
        ),
        Chip(
            "B", "orange", "other work",
            "the sum is right, but the same model takes 2.5 to 20 times the GPU-hours in A: this "
            "is continued training, not a model from scratch",
        ),
        Chip(
            "C", "orange", "costs left out",
            "staff, room, maintenance and the money tied up are missing, and serving writes off "
            "a machine that the training pays for already",
        ),
    ]  # fmt: skip


def chips(equal: EqualWork) -> list[Chip]:
    """Whether each option does the work in time, and why."""
    return [Chip(o.id, *VERDICTS[o.verdict], o.reason) for o in equal.options]


def equal_rows(equal: EqualWork) -> list[dict[str, str]]:
    """The three options on the same tokens: time, dollars, dollars a token, the prices' days."""
    each = equal.options

    def row(what: str, *cells: str) -> dict[str, str]:
        return _row(what, *cells)

    return [
        row("Hardware", *(o.title for o in each)),
        row("Time to finish", *map(_time, each)),
        row("Dollars for the work", *map(_usd, each)),
        row(
            "A billion tokens",
            *(
                "never" if o.usd_per_billion_tokens is None else money(o.usd_per_billion_tokens)
                for o in each
            ),
        ),
        row("At the article's own price", *map(_article, each)),
        row("Memory, needed and there", *map(_memory, each)),
        row("Machines of eight to be in time", *map(_machines, each)),
        row("Dated price", *map(_price, each)),
    ]


def told(equal: EqualWork) -> str:
    """What the work is, and how it becomes hours."""
    mine = cost_parameters()["case_mfu"]
    peak = value("b200_bf16_flops") / 1e15
    return (
        f"{number(equal.work.tokens / 1e12)} trillion tokens through "
        f"{number(equal.work.params / 1e9)} billion parameters are "
        f"{number(equal.gpu_hours)} GPU-hours: 6 × parameters × tokens, at {mine.likely:.0%} of a "
        f"B200's {number(peak)} PFLOPS in bf16. The ranges take {mine.low:.0%} to {mine.high:.0%}, "
        "and for C the machine's price at its ends. By the hour, more machines cost the same and "
        "take less time."
    )


def priced(equal: EqualWork) -> list[tuple[str, str, Seen]]:
    """Each option's dated price in words, its source with the article's own price, and its age."""
    found = []
    for o in equal.options:
        seen = o.price
        readings = ", ".join(f"{money(usd)} {reading}" for reading, usd in o.at_article_usd)
        found.append(
            (
                f"Option {o.id}: {money(seen.usd, 5)} {seen.unit}, {seen.text}",
                f"{day(seen.as_of)}, {seen.confidence} confidence: {seen.source}. "
                f"At the article's own price: {readings}.",
                seen,
            )
        )
    return found


def owned_rows(equal: EqualWork) -> list[tuple[str, str, str]]:
    """What Option C's dollars are made of: item, dollars and source of each row, then the sum."""
    flow = equal.options[-1].flow
    if flow is None:
        return []
    found = [(r.item, _exact(r.total), "; ".join(r.sources)) for r in flow.table()]
    return [*found, ("In all", _exact(float(flow.total)), "")]


def _row(what: str, *cells: str) -> dict[str, str]:
    return {"": what, **{f"Option {id}": cell for id, cell in zip(OPTIONS, cells, strict=True)}}


def _tokens(trillions: float | None) -> str:
    assert trillions is not None
    return f"{number(trillions, digits=2)} trillion tokens"


def _time(o: OptionOnWork) -> str:
    likely, least, most = o.months
    return f"{number(likely)} months ({number(least)} to {number(most)})"


def _usd(o: OptionOnWork) -> str:
    if o.usd is None:
        return "not within five years"
    ends = money(o.usd_low) if o.usd_low is not None else ""
    most = money(o.usd_high) if o.usd_high is not None else "more than five years"
    return f"{money(o.usd)} ({ends} to {most})"


def _article(o: OptionOnWork) -> str:
    return " or ".join(money(usd) for _, usd in o.at_article_usd)


def _memory(o: OptionOnWork) -> str:
    return f"{number(o.state_gib)} of {number(o.memory_gib)} GiB"


def _machines(o: OptionOnWork) -> str:
    return "none can" if o.machines_in_time is None else count(o.machines_in_time, "machine")


def _price(o: OptionOnWork) -> str:
    return f"{money(o.price.usd, 5)} {o.price.unit}"


def _exact(usd: float) -> str:
    return f"{'−' if usd < 0 else ''}${abs(usd):,.2f}"
