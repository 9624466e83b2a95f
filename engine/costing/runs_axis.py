"""How far the chart of a month's cost against its runs reaches, and what is said of its marks."""

from __future__ import annotations

from dataclasses import dataclass

from engine.cost.compare import Mark
from engine.costing.model import Wins

SLACK = 1.15  # of an axis beyond the last thing on it
FAR = 4.0  # times the plan's own figures, up to which the articles' marks stretch the axis


@dataclass(frozen=True, slots=True)
class RunsAxis:
    """The ends of the chart, the articles' marks on it, and those beyond it.

    right : runs a month at the right end; top : US dollars a month at the top
    """

    right: float
    top: float
    marks: tuple[Mark, ...]
    beyond: tuple[Mark, ...]

    @property
    def told(self) -> str:
        """What the articles' marks say, and which of them lie beyond the chart."""
        both = sorted((*self.marks, *self.beyond), key=lambda m: m.value)
        rent, buy = (f"{m.value:g}" for m in both)
        said = f"the articles rent below {rent} runs a month and buy above {buy}"
        if not self.beyond:
            return f"Dashed: {said}."
        values = " and ".join(f"{m.value:g}" for m in self.beyond)
        lie = "lies" if len(self.beyond) == 1 else "lie"
        return (
            f"{said[0].upper()}{said[1:]}; {values} {lie} beyond this chart, which reaches as far "
            "as the plan's own runs and break-evens."
        )


def runs_axis(wins: Wins) -> RunsAxis:
    """The chart that the plan's own runs and break-evens ask for.

    The articles' marks stand on it where the machines can do as many runs and where they don't
    press what is computed into a corner.
    """
    marks = tuple(m for m in wins.marks if m.id in ("mark_runs_rent", "mark_runs_buy"))
    own = max([wins.runs_now, *(p.value for _, p in wins.runs if p.value is not None)])
    own = own or min(m.value for m in marks)
    most = max((x1 for _, (_, (x1, _)) in wins.by_runs), default=own)
    near = [m.value for m in marks if m.value <= min(FAR * own, most)]
    right = SLACK * max([own, *near])
    level = max((y0 for _, ((_, y0), _) in wins.by_runs), default=0.0)
    rising = [y1 * min(right / x1, 1) for _, ((_, y0), (x1, y1)) in wins.by_runs if not y0]
    steep = max(rising, default=0.0)
    top = SLACK * (max(level, min(steep, 2 * level)) or steep)
    shown = tuple(m for m in marks if m.value <= right)
    return RunsAxis(right, top, shown, tuple(m for m in marks if m not in shown))
