"""What the worst failure asks of the architecture, and whether it must be distributed at all."""

from __future__ import annotations

from engine.assessment import Architecture, Option
from engine.decide.evaluation import Context
from engine.decide.model_rates import SMALL_MODELS
from engine.decide.priors import likely
from engine.estimate.run_reliability import exact_interval
from engine.estimate.small_inference import parameter
from engine.explain.stops import stops_of
from engine.wording import count, duration
from engine.workload.answers import Consistency, FailureMode, Kind


def architecture(context: Context, best: Option) -> Architecture:
    """Remedies for the worst failure with their numbers, the verdict on distribution, a diagram."""
    distributed = best.scale == "cluster"
    if distributed:
        machines = sum(s.machines for s in best.stages)
        verdict = f"It needs a distributed system: {count(machines, 'machine')} work together."
    else:
        verdict = (
            "It needs no distributed system: one machine holds it. "
            "Sharding, Kubernetes or a second node would only add ways to fail."
        )
    return Architecture(
        distributed, verdict, tuple(_remedies(context, best)), diagram(context, best)
    )


def _remedies(context: Context, best: Option) -> list[tuple[str, str]]:
    w = context.workload
    service = all(s.mode == "service" for s in context.stages)
    mode = w.failure_mode
    if mode is FailureMode.machine_loss:
        found = [("A spare machine", "sized in where the service may not be away for hours")]
        if service:
            found.append(
                ("A load balancer with health checks", "takes a dead machine out in seconds")
            )
        return found
    if mode is FailureMode.data_loss:
        if w.consistency is Consistency.eventual:
            return [
                (
                    "Two or more asynchronous replicas",
                    "what was written since the last copy is lost",
                ),
                ("Backups restored in a test", "replicas copy a mistake as fast as a write"),
            ]
        return [
            ("Three synchronous copies and a quorum", "two of three must agree, so one may die"),
            ("Backups restored in a test", "replicas copy a mistake as fast as a write"),
        ]
    if mode is FailureMode.long_run_loss:
        stops = stops_of(max(best.stages, key=lambda s: s.usd_per_month.likely))
        interval = float(exact_interval(likely("checkpoint_stall_h"), stops.abrupt))
        spot = any(s.acquisition == "spot" for s in best.stages)
        what = "a failure or an interruption" if spot else "a failure"
        return [
            ("Checkpoints",
             f"every {duration(interval)}: {what} is expected every {duration(stops.mtbf)}"),
            ("A restore that was tried", f"a restart takes about {duration(stops.restart)}"),
        ]  # fmt: skip
    if mode is FailureMode.silent_corruption:
        return [
            (
                "Validation of every result that leaves",
                "checksums, ranges, a second computation of samples",
            ),
            ("A watch on gradients or outliers", "threshold scaled with the number of tests"),
        ]
    if mode is FailureMode.late_answers:
        return [
            ("Headroom", f"machines are sized for {_load(context):.0%} at the peak"),
            ("A queue with a limit", "what can't be answered in time is refused early"),
        ]
    if mode is FailureMode.wasted_spend:
        return [
            ("Terms that end with the work", "pay by the hour until use is above the break-even")
        ]
    return [
        ("Name the failure that would hurt most", "it decides replicas, checkpoints and validation")
    ]


def _load(context: Context) -> float:
    """Highest load for which the machines of a service are sized, by what it computes."""
    works = {s.work for s in context.stages if s.mode == "service"}
    if "llm_inference" in works:
        return context.settings.serving.max_load_pct / 100.0
    if works & SMALL_MODELS:
        return parameter("target_load")
    return likely("cpu_pool_target_utilization")


def diagram(context: Context, best: Option) -> str:
    """The stages in the order of the data, each with its hardware, as one line."""
    parts = []
    for s in best.stages:
        word = "GPU" if s.hardware == "gpu" else "server"
        parts.append(f"{s.stage} ({count(s.units, word)})")
    if context.workload.kind in (Kind.web, Kind.online_inference, Kind.recsys):
        parts.insert(0, "Load balancer")
    return " → ".join(parts)
