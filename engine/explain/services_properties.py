"""The five properties of a distributed system (article 001, C128), audited for the recommendation.

Each is held, not held by design, missing, or not needed on one machine; what takes its place is
said. The article's "break one and it falls apart" (C129) does not hold for synchronous training,
which gives up independent failure on purpose: so this is an audit and no gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.assessment import Assessment
from engine.decide.guarantees import copies_asked
from engine.decide.service_sizing import spare_rule
from engine.workload.answers import Kind
from engine.workload.workload import LLM_TRAINING, SERVICES

Status = Literal["held", "not by design", "missing", "not needed"]
# Jobs of which every step waits for all machines.
IN_STEP = LLM_TRAINING | {Kind.dl_training, Kind.simulation}
TITLES = ("Separation", "Concurrency", "No global clock", "Independent failure", "Message passing")


@dataclass(frozen=True, slots=True)
class Property:
    """One of the five: how it stands, why, and what to do or what takes its place."""

    title: str
    status: Status
    why: str


def waits_for_all(answer: Assessment) -> str:
    """Whether every step must wait for all machines, in words; empty on one machine."""
    if answer.best.scale != "cluster":
        return ""
    kind = answer.workload.kind
    if kind in IN_STEP:
        return (
            "Synchronous: every step waits for all machines, so the slowest sets the pace and one "
            "that fails stops all. Updates that do not wait change what is computed."
        )
    if kind in SERVICES:
        agree = copies_asked(answer.workload, answer.settings.architecture).agree
        if agree:
            return (
                "Synchronous where it writes: a majority of the copies has a write before it is "
                "accepted. Reads and everything else do not wait."
            )
        return "Asynchronous: no request waits for another, and copies follow behind."
    return "Asynchronous: parts of a run do not wait for one another, only the end does for all."


def properties(answer: Assessment) -> tuple[Property, ...]:
    """The audit, in the article's order."""
    if answer.best.scale != "cluster":
        why = "one machine: no distributed system is needed, and none of its failures come with it"
        return tuple(Property(t, "not needed", why) for t in TITLES)
    in_step = answer.workload.kind in IN_STEP
    return (
        Property(
            "Separation", "held",
            "each machine has memory of its own; within one, GPUs read each other's over NVLink or "
            "PCIe, which is one computer" if in_step else "each machine has memory of its own",
        ),
        Property("Concurrency", "held", "all machines work at the same time"),
        Property(
            "No global clock", "held",
            "the order follows from the data that is exchanged, not from clocks; keep them in step "
            "for logs, leases and certificates" if in_step or answer.workload.kind in SERVICES
            else "no part's result depends on when another ran",
        ),
        _failure(answer, in_step),
        Property(
            "Message passing", "held",
            "collectives over the network between machines; remote memory access carries them, and "
            "no program shares memory with another machine" if in_step
            else "machines talk over the network alone",
        ),
    )  # fmt: skip


def _failure(answer: Assessment, in_step: bool) -> Property:
    """Whether a machine may fail alone."""
    w, title = answer.workload, "Independent failure"
    if in_step:
        return Property(
            title, "not by design",
            "one machine that fails stops all; checkpoints, a spare and a restart by itself take "
            "its place (page of reliability)",
        )  # fmt: skip
    if w.kind in SERVICES:
        copies = copies_asked(w, answer.settings.architecture).copies
        if copies > 1:
            return Property(title, "held", f"{copies} copies: one that dies leaves the others")
        if spare_rule(w)[0]:
            return Property(title, "held", "spare machines take over what a dead one carried")
        return Property(
            title, "missing",
            "no spare and no copy: a machine that dies takes its share with it until it is back. "
            "Say under failure mode how long it may be away, and a spare is sized in",
        )  # fmt: skip
    return Property(title, "held", "the parts of a machine that dies are run again on the others")
