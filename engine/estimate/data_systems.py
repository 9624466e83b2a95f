"""Demand of each kind of service by resource, with the formula in words.

`v` holds each input by name, as floats or arrays of one length: the workload's rate, peak, CPU time
and working set, and the rows of service_parameters.csv. Demands are for the peak, over all
machines; those that grow with the copies of the data contain them (`copies`), except for databases
and search, whose demand is that of one copy: each copy is served by machines of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.estimate.services import (
    Real,
    Resource,
    cores,
    gbit_per_s,
    kept_gb,
    mb_per_s,
    under_way,
)

Inputs = Mapping[str, Real]


@dataclass(frozen=True, slots=True)
class Need:
    """Demand for one resource at the peak, with its formula in words."""

    resource: Resource
    amount: Real
    formula: str


def web(v: Inputs) -> tuple[Need, ...]:
    """Web services: they hold no data but sessions and logs."""
    peak, share = v["peak"], v["network_share"]
    larger = np.maximum(v["request_kb"], v["answer_kb"])
    kept = v["data_gb"] if "data_gb" in v else kept_gb(v["mean"], v["log_kb"], v["retention_days"])
    return (
        _cores(v),
        Need(
            "memory",
            _r(
                (_a(v["working_set_gb"]) + _a(v["services"]) * v["instance_gb"]) / v["memory_share"]
            ),
            "(working set + services × memory of a copy) ÷ share of memory planned with",
        ),
        Need(
            "network",
            gbit_per_s(peak, larger, share),
            "peak × larger of request and answer ÷ share of the line",
        ),
        Need(
            "disk_rate",
            mb_per_s(peak, v["log_kb"], v["disk_load"]),
            "peak × log line ÷ share of the disk's rate",
        ),
        Need(
            "disk_space",
            _r(_a(kept) / v["disk_fill"]),
            "data, or log lines over their time ÷ fill of disks",
        ),
    )


def database(v: Inputs) -> tuple[Need, ...]:
    """A database: demand of one copy, each of which does all the writes.

    Reads of the working set come from memory; a share misses it.
    """
    peak, writes = _a(v["peak"]), _a(v["peak"]) * v["write_share"]
    ops = (writes * v["write_ops"] + (peak - writes) * v["miss_share"] * v["read_ops"]) / v[
        "disk_load"
    ]
    shipped = writes * v["write_kb"] * np.maximum(_a(v["copies"]) - 1.0, 0.0)
    out = (peak * v["answer_kb"] + shipped) / 125_000.0 / v["network_share"]
    kept = v["data_gb"] if "data_gb" in v else v["working_set_gb"]
    return (
        _cores(v),
        Need(
            "memory",
            _r(_a(v["working_set_gb"]) / v["memory_share"]),
            "working set ÷ share of memory planned with",
        ),
        Need(
            "network", _r(out), "(peak × result + writes to the other copies) ÷ share of the line"
        ),
        Need("disk_rate", _r(ops * v["page_kb"] / 1000.0), "disk operations × size of one"),
        Need(
            "disk_ops",
            _r(ops),
            "(writes × operations + reads × misses × operations) ÷ share of the disk's rate",
        ),
        Need(
            "disk_space",
            _r(_a(kept) * (1.0 + _a(v["overhead_share"])) / v["disk_fill"]),
            "data × (1 + indexes and logs) ÷ fill of disks",
        ),
    )


def log(v: Inputs) -> tuple[Need, ...]:
    """A log of events: every byte is written once for each copy, and read by each reader."""
    peak, copies = _a(v["peak"]), _a(v["copies"])
    wire = copies - 1.0 + np.maximum(v["fan_out"], 1.0)
    kept = (
        v["data_gb"] if "data_gb" in v else kept_gb(v["mean"], v["request_kb"], v["retention_days"])
    )
    cached = peak * v["request_kb"] / 1e6 * v["cache_s"]
    return (
        _cores(v),
        Need(
            "memory",
            _r((_a(v["working_set_gb"]) + cached) / v["memory_share"]),
            "(working set + newest events for their readers) ÷ share of memory planned with",
        ),
        Need(
            "network",
            gbit_per_s(peak, _a(v["request_kb"]) * np.maximum(wire, copies), v["network_share"]),
            "peak × event × (further copies + readers) ÷ share of the line",
        ),
        Need(
            "disk_rate",
            mb_per_s(peak * copies, v["request_kb"], v["disk_load"]),
            "peak × event × copies ÷ share of the disk's rate",
        ),
        Need(
            "disk_space",
            _r(_a(kept) * copies / v["disk_fill"]),
            "data to keep × copies ÷ fill of disks",
        ),
    )


def crawler(v: Inputs) -> tuple[Need, ...]:
    """Search and crawling: most of the time is waiting, so connections count beside cores."""
    peak = v["peak"]
    held = _a(under_way(peak, v["fetch_s"])) * v["connection_mb"] / 1000.0
    pages = (
        v["data_gb"]
        if "data_gb" in v
        else _r(_a(kept_gb(v["mean"], v["request_kb"], v["retention_days"])) * v["stored_share"])
    )
    stored = _a(v["request_kb"]) * v["stored_share"]
    return (
        _cores(v),
        Need(
            "memory",
            _r((_a(v["working_set_gb"]) + held) / v["memory_share"]),
            "(working set + peak × time of a fetch × a connection) ÷ share planned with",
        ),
        Need(
            "network",
            gbit_per_s(peak, v["request_kb"], v["network_share"]),
            "peak × page as fetched ÷ share of the line",
        ),
        Need(
            "disk_rate",
            mb_per_s(peak, stored, v["disk_load"]),
            "peak × page as stored ÷ share of the disk's rate",
        ),
        Need("disk_space", _r(_a(pages)), "data to keep; it lies in object storage"),
    )


def etl(v: Inputs) -> tuple[Need, ...]:
    """A run of data preparation inside its window: bytes through disks and network, core-hours.

    `server_hours` are hours on one reference server with `server_vcpu`, I/O not counted.
    """
    window_s = _a(v["window_h"]) * 3600.0
    data = v["data_gb"] if "data_gb" in v else v["working_set_gb"]
    return (
        Need(
            "cores",
            _r(_a(v["server_hours"]) * v["server_vcpu"] / v["window_h"]),
            "core-hours of a run ÷ its window",
        ),
        Need(
            "memory",
            _r(_a(v["working_set_gb"]) / v["memory_share"]),
            "working set ÷ share of memory planned with",
        ),
        Need(
            "network",
            _r(_a(data) * 8.0 * v["shuffle_share"] / window_s / v["network_share"]),
            "data × share that moves between machines ÷ window ÷ share of the line",
        ),
        Need(
            "disk_rate",
            _r(_a(data) * 1000.0 * v["passes"] / window_s / v["disk_load"]),
            "data × passes ÷ window ÷ share of the disk's rate",
        ),
        Need(
            "disk_space",
            _r(_a(data) * v["shuffle_share"] / v["disk_fill"]),
            "data that moves between machines ÷ fill of disks; the data itself stays where it is",
        ),
    )


def _cores(v: Inputs) -> Need:
    return Need(
        "cores",
        cores(v["peak"], v["cpu_ms_per_item"], v["load"]),
        "peak × core-ms of an item ÷ load planned with",
    )


def _a(x: Real) -> np.ndarray:
    return np.asarray(x, dtype=float)


def _r(x: np.ndarray) -> Real:
    return float(x) if np.ndim(x) == 0 else x
