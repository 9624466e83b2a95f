"""Published failure rates, and the ranges of what a failure costs: two tables with their sources.

`data/failure_rates.csv` holds fleets as their owners reported them, in the form in which they did:
failures over days, a rate per 1,000 node-days, or hours between failures of a job. Everything is
brought to failures per 1,000 node-days here, and only here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from engine.catalogue.models import Parameter, Provenance, Row
from engine.catalogue.read import parse, rows
from engine.errors import DataError, InputError

DATA = Path(__file__).resolve().parents[2] / "data"
HOURS_PER_DAY = 24.0
PER = 1000.0

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Fleet(Row):
    """One fleet as published: how often its machines failed, or how much of its time was useful.

    devices, days : size and time of observation
    failures : in those days, with a range where the source gives one
    per_1000_node_days, job_mtbf_h : the rate itself, where the source gives that
    useful_share : published share of useful time, `useful_bound` says which kind of bound it is
    counts : what was counted
    """

    id: str
    name: str
    hardware: str
    devices: Positive | None = None
    devices_per_node: Positive
    days: Positive | None = None
    failures_low: Positive | None = None
    failures: Positive | None = None
    failures_high: Positive | None = None
    per_1000_node_days: Positive | None = None
    job_mtbf_h: Positive | None = None
    useful_share: Annotated[float, Field(gt=0, le=1)] | None = None
    useful_bound: str = ""
    counts: str
    notes: str = ""
    provenance: Provenance

    @property
    def nodes(self) -> float | None:
        """Machines of the fleet."""
        return self.devices / self.devices_per_node if self.devices else None

    @property
    def rate(self) -> float | None:
        """Failures per 1,000 node-days; None where only the useful share is known."""
        if self.per_1000_node_days:
            return self.per_1000_node_days
        if self.job_mtbf_h and self.nodes:
            return HOURS_PER_DAY / self.job_mtbf_h / self.nodes * PER
        return self._over(self.failures)

    @property
    def rate_range(self) -> tuple[float, float] | None:
        """The range that the source itself gives."""
        low, high = self._over(self.failures_low), self._over(self.failures_high)
        return (low, high) if low and high else None

    @property
    def device_mtbf_h(self) -> float | None:
        """Device-hours per failure."""
        return self.devices_per_node * HOURS_PER_DAY * PER / self.rate if self.rate else None

    def _over(self, failures: float | None) -> float | None:
        if not (failures and self.nodes and self.days):
            return None
        return failures / self.nodes / self.days * PER


@lru_cache(maxsize=2)
def fleets(file: Path = DATA / "failure_rates.csv") -> Mapping[str, Fleet]:
    """Published fleets by id, in the order of the table.

    Raises
    ------
    DataError : a row without source, or with neither a rate nor a useful share
    """
    found: dict[str, Fleet] = {}
    for line, cells in rows(file):
        fleet = parse(Fleet, cells, file, line, date.today())
        if fleet.rate is None and fleet.useful_share is None:
            raise DataError(
                "says neither how often it failed nor how much was useful", file=file, line=line,
                column="failures", right="failures with days and devices, a rate, or useful_share",
            )  # fmt: skip
        if fleet.id in found:
            raise DataError(f"{fleet.id} stands twice", file=file, line=line, column="id")
        found[fleet.id] = fleet
    return found


def fleet(id: str) -> Fleet:
    """A published fleet whose rate is known.

    Raises
    ------
    InputError : no such fleet, or no rate
    """
    known = {f.id: f for f in fleets().values() if f.rate}
    if id not in known:
        raise InputError(
            f"no failure rate is known of “{id[:40]}”", where="like", right="one of "
            + ", ".join(known),
        )  # fmt: skip
    return known[id]


@lru_cache(maxsize=2)
def reliability_parameters(
    file: Path = DATA / "reliability_parameters.csv",
) -> Mapping[str, Parameter]:
    """Ranges of what a failure costs, by id: low, likely, high with unit and source.

    Raises
    ------
    DataError : a range that is not in order
    """
    found: dict[str, Parameter] = {}
    for line, cells in rows(file):
        row = parse(Parameter, cells, file, line, date.today())
        if not 0 < row.low <= row.likely <= row.high:
            raise DataError(
                f"{row.low:g}, {row.likely:g}, {row.high:g}", file=file, line=line, column="likely",
                right="above 0 and in order",
            )  # fmt: skip
        found[row.id] = row
    return found
