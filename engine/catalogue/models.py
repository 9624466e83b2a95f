"""Rows of the catalogue as typed, frozen models; each knows where it comes from and when.

Bandwidth is per direction, throughput dense, memory as the card reports it where that is known.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.catalogue.limits import limit

Confidence = Literal["high", "medium", "low"]
OfferTerms = Literal[
    "on_demand",
    "spot",
    "dedicated",
    "reserved_3m",
    "reserved_1y",
    "reserved_3y",
    "capacity_block",
    "marketplace",
]
OfferKind = Literal[
    "list", "observed", "aggregator", "analyst", "derived", "seed", "from", "superseded", "quote"
]
Freshness = Literal["fresh", "grey", "warn"]
NetworkLayer = Literal["scale-up", "scale-out"]
# Prices of these kinds may be chosen; the articles', analysts', "from" and old ones are shown only.
RANKABLE = frozenset({"list", "observed", "derived", "aggregator", "quote"})

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, le=1_000_000)]
Year = Annotated[int, Field(ge=2000, le=2100)]
Text = Annotated[str, Field(min_length=1)]


class Row(BaseModel):
    """What all rows share: frozen, nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Provenance(Row):
    """Where a row comes from, of which day it is, and how far to trust it."""

    source: Text
    as_of: date
    confidence: Confidence


class Accelerator(Row):
    """One accelerator. Rates in TFLOPS (dense) or TOPS, memory in GB and GiB, power in W."""

    sku: Text
    vendor: Text
    name: Text
    form_factor: str = ""
    memory_gb: Positive
    memory_type: str = ""
    memory_gib_reported: Positive | None = None
    memory_bandwidth_gb_per_s: Positive
    bf16_tflops_dense: Positive | None = None
    fp16_tflops_dense: Positive | None = None
    fp8_tflops_dense: Positive | None = None
    fp4_tflops_dense: Positive | None = None
    tf32_tflops_dense: Positive | None = None
    fp32_tflops: Positive | None = None
    fp64_tflops: Positive | None = None
    fp64_tensor_tflops: Positive | None = None
    int8_tops_dense: Positive | None = None
    measured_bf16_tflops: Positive | None = None
    scaleup_technology: str = ""
    scaleup_gb_per_s_per_direction: Positive | None = None
    scaleup_domain_gpus: Count | None = None
    host_link: str = ""
    tdp_w: Positive | None = None
    release_year: Year | None = None
    max_per_node: Count = 1
    status: str = ""
    verified: str = ""
    notes: str = ""
    provenance: Provenance


class CpuServer(Row):
    """One CPU server or instance. Peaks in GFLOPS at the clock named, memory in GB."""

    id: Text
    provider: Text
    name: Text
    kind: str = ""
    cpu: str = ""
    sockets: Count = 1
    vcpu: Positive
    physical_cores: Positive
    clock_ghz: Positive | None = None
    memory_gb: Positive | None = None
    memory_channels_per_socket: Count | None = None
    memory_mt_s: Positive | None = None
    memory_bandwidth_gb_per_s: Positive | None = None
    fp32_flop_per_cycle_core: Positive | None = None
    peak_fp32_gflops: Positive | None = None
    bf16_flop_per_cycle_core: Positive | None = None
    peak_bf16_gflops: Positive | None = None
    bf16_unit: str = ""
    network_gbit_per_s: NotNegative | None = None
    local_disk_gb: NotNegative | None = None
    tdp_w_per_socket: Positive | None = None
    notes: str = ""
    provenance: Provenance


class Network(Row):
    """One fabric. Bandwidth in GB/s per direction and GPU, latency in microseconds."""

    id: Text
    name: Text
    layer: NetworkLayer
    link_gbit_per_s: Positive | None = None
    nominal_gb_per_s_per_direction_per_link: Positive | None = None
    links_per_node: Positive | None = None
    nominal_gb_per_s_per_direction_per_gpu: Positive | None = None
    measured_allreduce_busbw_gb_per_s: Positive | None = None
    measured_setup: str = ""
    wire_gb_per_s_per_gpu: Positive | None = None
    wire_basis: str = ""
    efficiency_of_nominal: Positive | None = None
    latency_us_low: NotNegative | None = None
    latency_us_high: NotNegative | None = None
    rdma: str = ""
    nic_usd_low: Positive | None = None
    nic_usd_high: Positive | None = None
    switch_usd_low: Positive | None = None
    switch_usd_high: Positive | None = None
    switch_ports: Count | None = None
    cost_note: str = ""
    notes: str = ""
    provenance: Provenance


def freshness_of(age_days: int) -> Freshness:
    """fresh, then grey, then warn: the ages are rows of parameters.csv."""
    if age_days > limit("price_warn_after_days"):
        return "warn"
    return "grey" if age_days > limit("price_grey_after_days") else "fresh"


class Offer(Row):
    """A price of one instance: per instance and hour, and per GPU and hour where it has GPUs."""

    provider: Text
    sku: Text
    accelerator_sku: str | None = None
    cpu_server_id: str | None = None
    gpus_per_instance: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    vcpu: Positive | None = None
    memory_gb: Positive | None = None
    region: str = "any"
    acquisition: OfferTerms
    usd_per_instance_hour: Positive
    usd_per_gpu_hour: Positive | None = None
    min_commit: str = "none"
    kind: OfferKind
    notes: str = ""
    provenance: Provenance

    @property
    def rankable(self) -> bool:
        """Whether the price may be chosen: somebody's offer, not an article's or a "from" price."""
        return self.kind in RANKABLE

    def age_days(self, today: date) -> int:
        """Days since the price was seen; 0 for a price of the future."""
        return max((today - self.provenance.as_of).days, 0)

    def freshness(self, today: date) -> Freshness:
        """See `freshness_of`."""
        return freshness_of(self.age_days(today))


class Parameter(Row):
    """A named number with its range (80%) and unit; a traffic price with the end of its tier."""

    id: Text
    category: str = ""
    description: Text
    low: Annotated[float, Field(allow_inf_nan=False)]
    likely: Annotated[float, Field(allow_inf_nan=False)]
    high: Annotated[float, Field(allow_inf_nan=False)]
    unit: Text
    tier_up_to_gb: Positive | None = None
    provider: str = ""
    region: str = ""
    kind: str = ""
    notes: str = ""
    provenance: Provenance


class EgressTier(Row):
    """Outgoing traffic of a month up to an amount in GB (infinity for the last tier), per GB."""

    provider: Text
    up_to_gb: Annotated[float, Field(gt=0, allow_inf_nan=True)]
    usd_per_gb: NotNegative
    provenance: Provenance


class Claim(Row):
    """A claim of an article, paraphrased, with its check and verdict."""

    id: Text
    article: Text
    topic: Text
    kind: Text
    text: Text
    value: str = ""
    unit: str = ""
    condition: str = ""
    check: str = ""
    verdict: Text
    note: str = ""
    provenance: Provenance
