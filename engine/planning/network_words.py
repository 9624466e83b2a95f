"""The networks of a training plan in words for a table of three columns, and the worked cases.

Networks that make the same difference share a row, so that the list is read on a phone too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.estimate.network_cases import WorkedCase
from engine.estimate.network_choice import NetworkOutcome
from engine.planning.training_view import LEAST_WORTH_USD
from engine.report import words
from engine.report.words import number

NO_DIFFERENCE = "the same within a cent a GPU-hour"


@dataclass(frozen=True, slots=True)
class NetworkLine:
    """One line of the table: names, what a step and the run take, what the network is worth.

    Each of the three is a short first line and what stands small under it, which may be empty.
    """

    name: str
    name_more: str
    takes: str
    takes_more: str
    worth: str
    worth_more: str
    current: bool = False


def network_lines(outcomes: Sequence[NetworkOutcome]) -> tuple[NetworkLine, ...]:
    """The present network first, then the others from the fastest; like ones in one line."""
    present = [o for o in outcomes if o.current]
    like = [o for o in outcomes if not o.current and _no_difference(o)]
    rest = [o for o in outcomes if not o.current and not _no_difference(o)]
    lines = [_line(o, "the present one") for o in present]
    if len(like) > 1:
        lines.append(_together(like))
    else:
        rest += like
        rest.sort(key=lambda o: o.result.step_s.likely if o.result else float("inf"))
    return (*lines, *(_line(o, _worth(o)) for o in rest))


def _no_difference(o: NetworkOutcome) -> bool:
    worth = o.worth_usd_per_gpu_hour
    return o.result is not None and worth is not None and abs(worth) < LEAST_WORTH_USD


def _line(o: NetworkOutcome, worth: str) -> NetworkLine:
    r = o.result
    if r is None:
        return NetworkLine(o.name, "", "does not fit", "", "–", "")
    cost = f"; run {words.money(r.usd.likely)}, {_money(r.usd.low, r.usd.high)}" if r.usd else ""
    return NetworkLine(
        o.name, f"{r.utilization:.0%} of a step is work", number(r.step_s.likely, "s"),
        f"{number(r.step_s.low)} to {number(r.step_s.high)}{cost}", worth, _more(o), o.current,
    )  # fmt: skip


def _together(like: list[NetworkOutcome]) -> NetworkLine:
    results = [o.result for o in like if o.result]
    steps = [r.step_s.likely for r in results]
    least, most = number(min(steps)), number(max(steps), "s")
    uses = [f"{r.utilization:.0%}" for r in results]
    prices = [f"{o.name} {_money(*o.list_usd_per_gpu)} a GPU" for o in like if o.list_usd_per_gpu]
    same = number(max(steps), "s")
    return NetworkLine(
        ", ".join(o.name for o in like),
        f"{min(uses)} of a step is work" if min(uses) == max(uses)
        else f"{min(uses)} to {max(uses)} of a step is work",
        same if f"{least} s" == same else f"{least} to {most}", "",
        NO_DIFFERENCE, f"list price of {'; '.join(prices)}" if prices else "",
    )  # fmt: skip


def _worth(o: NetworkOutcome) -> str:
    worth = o.worth_usd_per_gpu_hour
    if worth is None:
        return "–"
    if abs(worth) < LEAST_WORTH_USD:
        return NO_DIFFERENCE
    said = "up to" if worth > 0 else "only if cheaper by"
    return f"{said} {words.money(abs(worth))} a GPU-hour"


def _more(o: NetworkOutcome) -> str:
    """Range of the worth, the same over the run, and the list price."""
    found = []
    worth, whole = o.worth_usd_per_gpu_hour, o.worth_usd_per_gpu
    if not o.current and worth is not None and whole is not None and not _no_difference(o):
        if o.worth_range is not None:
            low, high = (words.money(x) for x in sorted(abs(x) for x in o.worth_range))
            if low != high:  # else a cent's rounding hides it
                found.append(f"{low} to {high}")
        over = f"{words.money(abs(whole))} a GPU over the run"
        if o.worth_range_per_gpu is not None:
            over += f", {_money(*sorted(abs(x) for x in o.worth_range_per_gpu))}"
        found.append(over)
    if o.list_usd_per_gpu is not None:
        found.append(f"list price {_money(*o.list_usd_per_gpu)} a GPU")
    return "; ".join(found)


def _money(low: float, high: float) -> str:
    return f"{words.money(low)} to {words.money(high)}"


# --- the articles' measurements


def case_line(w: WorkedCase) -> tuple[str, str, str]:
    """What an article measured, what is computed, and whether the one is in the other."""
    case = w.case
    if case.measure == "times_as_long":
        told = f"{w.likely:.2f} times as long, {w.low:.2f} to {w.high:.2f}"
    else:
        of = "time" if case.measure == "time_saved" else "of the traffic's time"
        told = f"{_share(w.likely)} less {of}, {_share(w.low)} to {_share(w.high)}"
    if w.busy is not None:
        slow, fast = w.busy
        told += f"; at work {slow:.0%} of a step against {fast:.0%}"
    verdict = f"Reproduced. {case.reason}." if w.reproduced else f"Set aside. {case.reason}."
    return f"{case.says} ({case.article}, {case.claims})", f"{told}. {case.settings}.", verdict


def _share(x: float) -> str:
    return f"{max(x, 0.0):.0%}"
