"""Named checks of prices: against the hardware, the same provider's others, and the market's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from engine.catalogue.models import Accelerator, CpuServer, Offer
from engine.errors import DataError
from engine.wording import rough

Numbered = Sequence[tuple[int, Offer]]
Key = tuple[str, str, str, str, str, int]
# GB against GiB.
MEMORY_ROUNDING = 0.08
# The same figure, apart from rounding.
SAME_PRICE = 0.001


def offer_key(offer: Offer) -> Key:
    """What makes a price the same offer on another day: who, what, where, on which terms."""
    o = offer
    return (o.provider, o.sku, o.region, o.acquisition, o.min_commit, o.gpus_per_instance)


def instance_price(offer: Offer, file: Path, line: int) -> list[DataError]:
    """The price of the instance is that of its GPUs."""

    def fault(column: str, wrong: str, right: str) -> list[DataError]:
        return [DataError(wrong, file=file, line=line, column=column, right=right)]

    if offer.accelerator_sku is None:
        if offer.gpus_per_instance and offer.rankable:
            return fault("accelerator_sku", "is empty", "a price that ranks names its GPU")
        return []
    if offer.gpus_per_instance == 0:
        return fault("gpus_per_instance", "is 0", "the number of GPUs in the instance")
    if offer.usd_per_gpu_hour is None:
        return fault("usd_per_gpu_hour", "is empty", "the price of the instance over its GPUs")
    whole = offer.gpus_per_instance * offer.usd_per_gpu_hour
    if abs(whole / offer.usd_per_instance_hour - 1) > 0.01:
        return fault(
            "usd_per_instance_hour",
            f"{offer.gpus_per_instance} × {offer.usd_per_gpu_hour:g} is {whole:g}, "
            f"the instance costs {offer.usd_per_instance_hour:g}",
            "GPUs × price per GPU",
        )
    return []


def known(
    offers: Numbered,
    accelerators: Mapping[str, Accelerator],
    servers: Mapping[str, CpuServer],
    file: Path,
) -> Iterator[DataError]:
    """The hardware of every offer is in the catalogue, and a server is of the size named."""
    for line, offer in offers:
        if offer.accelerator_sku is not None and offer.accelerator_sku not in accelerators:
            yield DataError(
                f"{offer.accelerator_sku!r} is not in the catalogue",
                file=file,
                line=line,
                column="accelerator_sku",
                right="a sku of accelerators.csv",
            )
        if offer.cpu_server_id is None:
            continue
        server = servers.get(offer.cpu_server_id)
        if server is None:
            yield DataError(
                f"{offer.cpu_server_id!r} is not in the catalogue",
                file=file,
                line=line,
                column="cpu_server_id",
                right="an id of cpu_servers.csv",
            )
        elif offer.vcpu is not None and offer.vcpu != server.vcpu:
            yield DataError(
                f"{offer.vcpu:g} vCPU, and {server.id} has {server.vcpu:g}",
                file=file,
                line=line,
                column="vcpu",
                right=f"{server.vcpu:g}",
            )
        elif (
            offer.memory_gb is not None
            and server.memory_gb is not None
            and not abs(offer.memory_gb / server.memory_gb - 1) <= MEMORY_ROUNDING
        ):
            yield DataError(
                f"{offer.memory_gb:g} GB, and {server.id} has {server.memory_gb:g}",
                file=file,
                line=line,
                column="memory_gb",
                right=f"{server.memory_gb:g}",
            )


def twice(offers: Numbered, file: Path) -> Iterator[DataError]:
    """No price that ranks stands twice, or beside the older one that it replaced."""
    seen: dict[Key, int] = {}
    for line, o in offers:
        if not o.rankable:
            continue
        key = offer_key(o)
        if key in seen:
            yield DataError(
                f"the price of {o.provider} {o.sku} stands on line {seen[key]} as well",
                file=file,
                line=line,
                column="sku",
                right="the older one of kind superseded",
            )
        seen.setdefault(key, line)


def stale(offers: Numbered, file: Path) -> Iterator[DataError]:
    """No price that ranks is one that its provider has since replaced, in whatever region.

    Public code carries such constants for years: AWS' P5 at 98.32 is the best known.
    """
    replaced: dict[tuple[str, str, str], list[Offer]] = {}
    for _, o in offers:
        if o.kind == "superseded":
            replaced.setdefault((o.provider, o.sku, o.acquisition), []).append(o)
    for line, o in offers:
        if not o.rankable:
            continue
        for old in replaced.get((o.provider, o.sku, o.acquisition), ()):
            if abs(o.usd_per_instance_hour / old.usd_per_instance_hour - 1) <= SAME_PRICE:
                yield DataError(
                    f"${o.usd_per_instance_hour:g} is the price of {old.provenance.as_of}, "
                    f"since replaced ({o.provider} {o.sku})",
                    file=file,
                    line=line,
                    column="usd_per_instance_hour",
                    right="today's price, or the old row taken out if it holds again",
                )


def outliers(offers: Numbered, file: Path, factor: float, low_factor: float) -> Iterator[DataError]:
    """Prices off the median of the others for like hardware and terms: dearer or cheaper by more.

    GPUs are compared per GPU with the same GPU, servers per vCPU with all servers. The cheap side
    is the closer one: it is the cheap price that an answer would be built on.
    """
    groups: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for line, offer in offers:
        if not offer.rankable:
            continue
        if offer.accelerator_sku is not None and offer.usd_per_gpu_hour is not None:
            key = (offer.accelerator_sku, offer.acquisition)
            groups.setdefault(key, []).append((line, offer.usd_per_gpu_hour))
        elif offer.accelerator_sku is None and offer.vcpu is not None:
            key = ("servers, per vCPU", offer.acquisition)
            groups.setdefault(key, []).append((line, offer.usd_per_instance_hour / offer.vcpu))
    for (hardware, terms), prices in groups.items():
        for place, (line, usd) in enumerate(prices):
            others = [p for other, (_, p) in enumerate(prices) if other != place]
            if not others:
                continue
            middle = median(others)
            if usd > factor * middle or usd * low_factor < middle:
                of_gpu = not hardware.startswith("servers")
                yield DataError(
                    f"${usd:g} an hour is {rough(usd / middle)} times the others' ${middle:g} "
                    f"({hardware}, {terms})",
                    file=file,
                    line=line,
                    column="usd_per_gpu_hour" if of_gpu else "usd_per_instance_hour",
                    right="dollars an hour: not cents, not a fleet's, not a month's",
                )


def siblings(offers: Numbered, file: Path, factor: float) -> Iterator[DataError]:
    """A provider's prices of one GPU on the same terms lie near each other, spot below on demand.

    A host sold without its GPU, or an on-demand price entered as spot, passes for a market's.
    """
    same: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    on_demand: dict[tuple[str, str, str], float] = {}
    for line, o in offers:
        if not o.rankable:
            continue
        if o.accelerator_sku is not None and o.usd_per_gpu_hour is not None:
            key = (o.provider, o.accelerator_sku, o.acquisition)
            same.setdefault(key, []).append((line, o.usd_per_gpu_hour))
        if o.acquisition == "on_demand":
            on_demand[(o.provider, o.sku, o.region)] = o.usd_per_instance_hour
    for (provider, sku, terms), prices in same.items():
        dearest = max(usd for _, usd in prices)
        for line, usd in prices:
            if usd * factor < dearest:
                yield DataError(
                    f"${usd:g} a GPU-hour, and {provider} asks up to ${dearest:g} for the same "
                    f"({sku}, {terms})",
                    file=file,
                    line=line,
                    column="usd_per_gpu_hour",
                    right="the price of the machine with its GPUs",
                )
    for line, o in offers:
        full = on_demand.get((o.provider, o.sku, o.region))
        if o.acquisition == "spot" and o.rankable and full and o.usd_per_instance_hour >= full:
            yield DataError(
                f"spot at ${o.usd_per_instance_hour:g} is no less than ${full:g} on demand",
                file=file,
                line=line,
                column="usd_per_instance_hour",
                right="the spot price",
            )
