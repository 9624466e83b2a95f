"""How often a stage of the recommendation stops when any of its machines does, in hours.

The short form of what `engine.explain.run_conditions` tells in full, for those who have the stages
and no assessment yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.assessment import StagePlan
from engine.catalogue import load_catalogue
from engine.cost.cloud import spot_terms
from engine.decide.priors import likely
from engine.estimate.reliability import fleet_mtbf
from engine.estimate.whole_run import restart_hours

HOURS_PER_DAY = 24.0


@dataclass(frozen=True, slots=True)
class Stops:
    """Hours between two stops of a run, and those between two that lose work.

    mtbf : between failures and interruptions together
    abrupt : between those that leave no time for a last checkpoint
    restart : from a stop to useful work
    """

    mtbf: float
    abrupt: float
    restart: float


def stops_of(stage: StagePlan) -> Stops:
    """Stops of one run of a stage: failures of its machines, on spot their interruptions too."""
    gpu = stage.hardware == "gpu"
    side = max(stage.side_by_side, 1.0)
    units = max(stage.units / side, 1.0)
    device = likely("mtbf_gpu_hours" if gpu else "cpu_node_mtbf_h")
    failures = 1 / float(fleet_mtbf(device, units))
    taken = warned = 0.0
    if stage.acquisition == "spot":
        machines = max(stage.machines / side, 1.0)
        taken = likely("spot_interruptions_per_node_day") / HOURS_PER_DAY * machines
        provider = stage.price.provider if stage.price else ""
        notice = float(np.max(spot_terms(provider, load_catalogue().running).notice))
        warned = taken if notice >= likely("checkpoint_stall_h") else 0.0
    restart = float(restart_hours(units)) if gpu else likely("restart_h")
    return Stops(1 / (failures + taken), 1 / (failures + taken - warned), restart)
