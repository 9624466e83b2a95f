"""Whether a room can power and cool what is to be bought, and in how many racks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from engine.cost.checks import positive
from engine.wording import number

Cooling = Literal["air", "liquid"]


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Racks needed, or the reason why it can't be done there. A reason is a veto."""

    racks: int
    kw: float
    feasible: bool
    reason: str


def check(
    units: int,
    kw_per_unit: float,
    rack_limit_kw: float,
    cooling: Cooling = "air",
    available_kw: float | None = None,
) -> Feasibility:
    """Place machines into racks within the limit of the cooling, and within the room's power.

    rack_limit_kw : load that one rack can carry with this cooling
    available_kw : IT power that the room can give; None when it isn't known
    """
    positive("units", units)
    positive("kw_per_unit", kw_per_unit)
    positive("rack_limit_kw", rack_limit_kw)
    kw = units * kw_per_unit
    per_rack = math.floor(rack_limit_kw / kw_per_unit)
    if per_rack < 1:
        return Feasibility(
            0,
            kw,
            False,
            f"One machine draws {number(kw_per_unit)} kW; a rack cooled by {cooling} carries "
            f"{number(rack_limit_kw)} kW."
            + (" Liquid cooling is needed." if cooling == "air" else ""),
        )
    racks = math.ceil(units / per_rack)
    if available_kw is not None and kw > available_kw:
        return Feasibility(
            racks,
            kw,
            False,
            f"{number(kw)} kW are needed and {number(available_kw)} kW are available.",
        )
    room = f"{racks} rack{'s' if racks > 1 else ''}, at most {per_rack} of the machines in each."
    return Feasibility(racks, kw, True, room)
