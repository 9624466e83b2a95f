"""The whole assessment and the point assessment, on one core, over every example."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import date
from functools import partial

from engine.assess import assess, assess_point
from engine.workload.examples import examples

NAME = "Assessment (whole with 4,096 draws and flips: goal 300 ms; point: goal 20 ms)"
TODAY = date(2026, 12, 1)


def milliseconds(call: Callable[[], object]) -> float:
    """Wall time of one call [ms]."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def run() -> None:
    """Print median and worst over the examples; the first of all calls apart."""
    workloads = [e.workload for e in examples().values()]
    first = milliseconds(lambda: assess(workloads[0], today=TODAY))
    for w in workloads:
        assess(w, today=TODAY)
    whole = [milliseconds(partial(assess, w, today=TODAY)) for w in workloads]
    point = [milliseconds(partial(assess_point, w, today=TODAY)) for w in workloads]
    print(f"  first call of a process      {first:7.1f} ms")
    print(f"  whole, median / worst        {statistics.median(whole):7.1f} / {max(whole):.1f} ms")
    print(f"  point, median / worst        {statistics.median(point):7.1f} / {max(point):.1f} ms")
