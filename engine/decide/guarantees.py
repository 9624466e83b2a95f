"""How many copies the worst failure asks for, and whether they must agree.

A strong answer and a network that splits leave one choice: the minority stops answering (CAP).
Where stale answers will do, copies follow behind and every side goes on. Data that can be fetched
or computed again needs no copy, and a service that may be away for hours needs a backup only.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.estimate.services import losses_survived, majority
from engine.workload.answers import Consistency, Downtime, FailureMode, Kind
from engine.workload.services_terms import ServicesTerms
from engine.workload.workload import Workload

# Upper end of what each answer on the tolerated absence says [h].
AWAY_H: dict[Downtime, float] = {
    Downtime.seconds: 30 / 3600,
    Downtime.minutes: 10 / 60,
    Downtime.hours: 4.0,
    Downtime.day: 24.0,
}
STATEFUL = frozenset({Kind.database, Kind.streaming, Kind.search, Kind.recsys})
URGENT = (Downtime.seconds, Downtime.minutes)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Copies of the data, whether a majority must agree, and why.

    voters : machines that vote, with a witness where there are two copies
    holders : copies that have a write before it is accepted
    """

    copies: int
    agree: bool
    voters: int
    why: str
    holders: int = 1

    @property
    def survives(self) -> int:
        """Copies that may be lost at once without losing an accepted write."""
        return losses_survived(self.holders)

    @property
    def quorum(self) -> int:
        """Voters that must agree on a write."""
        return majority(self.voters)


def copies_asked(w: Workload, terms: ServicesTerms) -> Guarantee:
    """Copies by the worst failure, the tolerated absence and what readers must see."""
    strong = w.consistency in (Consistency.strong, Consistency.unknown)
    copies, why = _copies(w, strong)
    if terms.copies is not None:
        copies, why = terms.copies, "as you set it"
    agree = copies > 1 and strong and w.kind in (Kind.database, Kind.streaming, Kind.recsys)
    # Two copies can't tell a dead peer from a cut line; a third voter without data can.
    voters = copies + (1 if agree and copies % 2 == 0 else 0)
    # A witness has no data: of two copies that agree both have a write. A log waits for two.
    holders = majority(copies) if agree else min(copies, 2) if w.kind is Kind.streaming else 1
    return Guarantee(copies, agree, voters if agree else copies, why, holders)


def _copies(w: Workload, strong: bool) -> tuple[int, str]:
    mode, kind = w.failure_mode, w.kind
    if kind not in STATEFUL:
        return 1, "it holds no data of its own"
    if mode is FailureMode.data_loss:
        if kind is Kind.search:
            return 2, "what was gathered must not be lost"
        if kind is Kind.streaming or strong:
            return 3, "a machine that dies must not take accepted writes with it"
        return 2, "a second copy that follows behind"
    if w.downtime in URGENT:
        return 2, f"it may be away for {w.downtime.value} only: a standby takes over"
    if mode is FailureMode.machine_loss and w.downtime is Downtime.unknown:
        return 2, "the loss of a machine is the worst that can happen"
    if kind is Kind.streaming:
        return 2, "events that came in can't be asked for again"
    return 1, "a backup is enough for what you told of failures"
