"""The whole assessment and the point assessment, on one core, over every example.

Known: the model was assessed before. New: nothing of it is kept, as when its size is first told.
The examples have no language model that answers all day, so one stands beside them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import date
from functools import partial

from engine.assess import assess, assess_point
from engine.decide import model_rates, serving_rates, training_time
from engine.estimate import plan_space, serving_points
from engine.workload.examples import examples
from engine.workload.workload import parse

NAME = "Assessment (whole with 4,096 draws and flips: goal 300 ms; point: goal 20 ms)"
TODAY = date(2026, 12, 1)
# Where what was worked out for a model is kept.
KEEPERS = (training_time, serving_rates, model_rates, plan_space, serving_points)
CHAT = {
    "name": "chat", "kind": "online_inference", "model_class": "llm", "model_params_b": 70.0,
    "tokens_in": 1500.0, "tokens_out": 300.0, "rate_per_s": 5.0, "peak_factor": 3.0,
    "latency_ms": 2000.0,
}  # fmt: skip


def milliseconds(call: Callable[[], object]) -> float:
    """Processor time of one call [ms]: other work on the machine does not count."""
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1000


def forget() -> None:
    """Empty what is kept of models, and of nothing else."""
    for module in KEEPERS:
        for value in vars(module).values():
            if hasattr(value, "cache_clear") and value.__module__ == module.__name__:
                value.cache_clear()


def new(call: Callable[[], object]) -> float:
    """The same for a model that was never assessed."""
    forget()
    return milliseconds(call)


def run() -> None:
    """Print median and worst over the examples; the first of all calls apart."""
    workloads = [e.workload for e in examples().values()]
    first = milliseconds(lambda: assess(workloads[0], today=TODAY))
    print(f"  first call of a process      {first:7.1f} ms")
    chat = parse(CHAT)
    for w in (*workloads, chat):
        assess(w, today=TODAY)
    for measured, how in ((milliseconds, "known"), (new, "new")):
        for call, name, goal in ((assess, "whole", 300), (assess_point, "point", 20)):
            told = [measured(partial(call, w, today=TODAY)) for w in workloads]
            served = measured(partial(call, chat, today=TODAY))
            _say(f"{name}, model {how}", told, served, goal)


def _say(name: str, told: list[float], served: float, goal: int) -> None:
    median, worst = statistics.median(told), max(told)
    print(
        f"  {name:18s} median / worst {median:7.1f} / {worst:.1f} ms, "
        f"70B chat {served:.1f} ms (goal {goal} ms)"
    )
