"""What the plans of compute jobs and small models are about, before what there is to mind."""

from __future__ import annotations

from engine.decide.evaluation import Context
from engine.decide.idle import idle_note
from engine.explain.jobs_owning import NOTE, in_own_rooms
from engine.explain.services_pipeline import stages_elsewhere


def about(ctx: Context) -> tuple[str, ...]:
    """That nothing runs, that all is owned, and which stages are planned on another page."""
    w = ctx.workload
    told = (idle_note(w), NOTE if in_own_rooms(w) else "", stages_elsewhere(ctx))
    return tuple(note for note in told if note)
