"""What could run the job: concrete GPUs and servers with their prices, placed on the stages.

A unit is one GPU (of an instance with `per_machine` of them) or one CPU server. A price is the
second cheapest of the providers that offer the unit, with the cheapest and the third as its range:
an offer that can be had, with an alternative on either side. Articles' rows never rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import product
from typing import Literal

from engine.assessment import Acquisition, Placement, PriceRef
from engine.catalogue import Accelerator, Catalogue, CpuServer, Offer
from engine.cost.checks import LONGEST_HORIZON_MONTHS
from engine.cost.cloud import commit_months
from engine.decide.owning import (
    PLANNED_USE,
    Owner,
    gpu_owner,
    gpus_per_machine,
    server_owner,
)
from engine.decide.priors import likely
from engine.estimate.jobs import Stage
from engine.workload.answers import Location
from engine.workload.cost_terms import CostTerms
from engine.workload.workload import HOURS_PER_MONTH, Workload

ACQUISITIONS: tuple[Acquisition, ...] = (
    "on_demand", "spot", "dedicated", "reserved_1y", "reserved_3y", "buy",
)  # fmt: skip
# Which offers' terms count as which acquisition: three months reserved is a dedicated rental.
OFFER_TERMS: dict[Acquisition, tuple[str, ...]] = {
    "on_demand": ("on_demand",),
    "spot": ("spot",),
    "dedicated": ("dedicated", "reserved_3m"),
    "reserved_1y": ("reserved_1y",),
    "reserved_3y": ("reserved_3y",),
}
COMMIT_MONTHS: dict[Acquisition, int] = {
    "on_demand": 0, "spot": 0, "dedicated": 1, "reserved_1y": 12, "reserved_3y": 36, "buy": 0,
}  # fmt: skip
GB_PER_GIB = 1.073741824
REFERENCE_GPU = "h100-sxm-80gb"
# Accelerators that need another framework's code (JAX on TPU, Neuron on Trainium) are listed in
# the catalogue but not proposed: the move is a project of its own.
PROPOSED_VENDORS = ("NVIDIA", "AMD")
# GeForce licences forbid data-centre use (accelerators.csv, notes): listed, not proposed.
CONSUMER = ("GeForce",)
# A price that a single provider gives is no market: such a GPU is listed but not proposed.
MIN_PROVIDERS = 2
EU_WORDS = ("eu", "europe", "germany", "france", "finland", "norway", "uk-", "westeurope")
US_WORDS = ("us", "ashburn", "phoenix", "virginia")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per unit and hour (paid for hours) or per unit and month (owned).

    owner : the rows of owning, where the unit is bought
    min_months : shortest time that it can be rented for by the month
    """

    basis: Literal["hour", "month"]
    low: float
    likely: float
    high: float
    ref: PriceRef | None
    alternatives: tuple[PriceRef, ...] = ()
    owner: Owner | None = None
    min_months: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One GPU or one CPU server as the estimates see it."""

    hardware: Literal["gpu", "cpu"]
    sku: str
    name: str
    per_machine: int
    vcpu: float
    memory_gb: float
    host_memory_gb: float
    network_gbit_per_s: float
    accelerator: Accelerator | None
    server: CpuServer | None
    prices: dict[Acquisition, Price]
    # Lowest rent of the hardware on any terms but spot: what a dollar buys of it.
    reference_usd_per_hour: float

    def on_demand_usd_per_hour(self) -> float:
        """The reference price of the unit, for ratios."""
        price = self.prices.get("on_demand") or next(iter(self.prices.values()))
        return price.likely if price.basis == "hour" else price.likely / HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class Spec:
    """A candidate before its size is known: which hardware each stage runs on, and the terms."""

    placement: Placement
    stage_hardware: tuple[Literal["gpu", "cpu"], ...]
    gpu: Unit | None
    cpu: Unit | None
    acquisition: Acquisition

    @property
    def id(self) -> str:
        """A stable name that tells candidates apart."""
        parts: list[str] = [self.placement]
        if self.gpu is not None:
            parts.append(f"{self.gpu.sku}x{self.gpu.per_machine}")
        if self.cpu is not None:
            parts.append(self.cpu.sku.lower().replace(" ", "-"))
        return "/".join([*parts, self.acquisition])


def owned_gpus(unit: Unit) -> int:
    """GPUs in one machine of this hardware when it is bought."""
    price = unit.prices.get("buy")
    if price is not None and price.owner is not None:
        return int(price.owner.units_per_machine)
    assert unit.accelerator is not None
    return gpus_per_machine(unit.accelerator)


def price_ref(offer: Offer, today: date) -> PriceRef:
    """An offer as the answer shows it, with its age."""
    per_unit = offer.usd_per_gpu_hour if offer.accelerator_sku else offer.usd_per_instance_hour
    assert per_unit is not None
    return PriceRef(
        provider=offer.provider,
        sku=offer.sku,
        usd_per_unit_hour=per_unit,
        acquisition=offer.acquisition,
        region=offer.region,
        as_of=offer.provenance.as_of,
        age_days=offer.age_days(today),
        freshness=offer.freshness(today),
        source=offer.provenance.source,
        confidence=offer.provenance.confidence,
    )


def allowed_region(region: str, location: Location) -> bool:
    """Whether an offer's region satisfies where the data may be; `any` satisfies all."""
    if location in (Location.anywhere, Location.in_house):
        return True
    text = region.lower()
    words = EU_WORDS if location is Location.eu else US_WORDS
    return text in ("any", "") or text.startswith(words)


def market_price(offers: Iterable[Offer], today: date) -> Price | None:
    """The second cheapest of the distinct providers, ranged by its neighbours.

    Offers older than the warning age count only when no younger one exists.
    """
    usable = [o for o in offers if o.rankable]
    # An index averages offers; it is nobody's offer, and counts only where nothing else does.
    usable = [o for o in usable if o.kind != "aggregator"] or usable
    quoted = sorted((o for o in usable if o.kind == "quote"), key=_usd_per_unit)
    young = [o for o in usable if o.freshness(today) != "warn"]
    best: dict[str, Offer] = {}
    for offer in sorted(young or usable, key=_usd_per_unit):
        best.setdefault(offer.provider, offer)
    ranked = list(best.values())
    if not ranked:
        return None
    chosen = ranked[min(1, len(ranked) - 1)]
    # A price that the user was offered is had for certain: it is taken where it is no dearer.
    if quoted and _usd_per_unit(quoted[0]) <= _usd_per_unit(chosen):
        usd = _usd_per_unit(quoted[0])
        refs = tuple(price_ref(o, today) for o in ranked[:8])
        least = _least_months(quoted[0])
        return Price("hour", usd, usd, usd, price_ref(quoted[0], today), refs, min_months=least)
    spread = likely("single_offer_spread")
    usd = _usd_per_unit(chosen)
    low = _usd_per_unit(ranked[0]) if len(ranked) > 1 else usd / spread
    high = _usd_per_unit(ranked[2]) if len(ranked) > 2 else usd * spread
    refs = tuple(price_ref(o, today) for o in ranked[:8])
    ref = price_ref(chosen, today)
    least = _least_months(chosen)
    return Price("hour", min(low, usd), usd, max(high, usd), ref, refs, min_months=least)


def _least_months(offer: Offer) -> int:
    """Shortest time that the machine can be rented for by the month."""
    return min(commit_months(offer.min_commit), LONGEST_HORIZON_MONTHS)


def _usd_per_unit(offer: Offer) -> float:
    usd = offer.usd_per_gpu_hour if offer.accelerator_sku else offer.usd_per_instance_hour
    assert usd is not None
    return float(usd)


def gpu_units(
    catalogue: Catalogue, workload: Workload, today: date, terms: CostTerms
) -> list[Unit]:
    """GPUs that can be had, once for each number of GPUs in a machine that is offered."""
    key = _Key(catalogue, workload.location, workload.horizon_months, today, owning_terms(terms))
    return list(_gpu_units(key))


def cpu_units(
    catalogue: Catalogue, workload: Workload, today: date, terms: CostTerms
) -> list[Unit]:
    """CPU servers that can be had, by size; one unit for each offered instance type."""
    key = _Key(catalogue, workload.location, workload.horizon_months, today, owning_terms(terms))
    return list(_cpu_units(key))


def owning_terms(terms: CostTerms) -> CostTerms:
    """The terms that prices depend on, those of owning; the rest as usual, so that prices keep."""
    names = (
        "machine_sku", "machine_usd", "site", "cooling", "usd_per_kwh", "pue", "available_kw",
        "delivery_months", "staff_fte", "stored_gb", "discount_pct",
    )  # fmt: skip
    return CostTerms().model_copy(update={name: getattr(terms, name) for name in names})


@dataclass(frozen=True, slots=True)
class _Key:
    """What prices depend on. The catalogue counts as the same object, not an equal one."""

    catalogue: Catalogue
    location: Location
    months: int
    today: date
    terms: CostTerms

    def __hash__(self) -> int:
        return hash((id(self.catalogue), self.location, self.months, self.today, self.terms))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key)
            and other.catalogue is self.catalogue
            and (other.location, other.months, other.today, other.terms)
            == (self.location, self.months, self.today, self.terms)
        )


@lru_cache(maxsize=32)
def _gpu_units(key: _Key) -> tuple[Unit, ...]:
    catalogue = key.catalogue
    units = []
    for sku, acc in catalogue.accelerators.items():
        if acc.vendor not in PROPOSED_VENDORS or acc.bf16_tflops_dense is None:
            continue
        if acc.name.startswith(CONSUMER):
            continue
        offers = [
            o
            for o in catalogue.offers
            if o.accelerator_sku == sku
            and o.rankable
            and o.acquisition != "marketplace"
            and allowed_region(o.region, key.location)
        ]
        if _sellers([o for o in offers if o.acquisition == "on_demand"]) < MIN_PROVIDERS:
            continue
        # Alone, or as a whole machine: a fleet that trains together needs whole machines.
        forms = sorted({1, acc.max_per_node if acc.max_per_node in (4, 8) else 1})
        priced = {n: _gpu_prices(key, acc, offers, n) for n in forms}
        priced = {n: p for n, p in priced.items() if "on_demand" in p}
        if not priced:
            continue
        reference = _lowest_rent(priced.values())
        for per_machine, prices in priced.items():
            fit = [o for o in offers if o.gpus_per_instance in (1, per_machine)]
            hosts = [o for o in fit if o.vcpu and o.memory_gb and o.gpus_per_instance]
            vcpu = min((float(o.vcpu or 0) / o.gpus_per_instance for o in hosts), default=16.0)
            memory = min(
                (float(o.memory_gb or 0) / o.gpus_per_instance for o in hosts), default=100.0
            )
            gib = acc.memory_gib_reported
            units.append(
                Unit(
                    "gpu",
                    sku,
                    acc.name,
                    per_machine,
                    vcpu,
                    gib * GB_PER_GIB if gib is not None else acc.memory_gb,
                    memory,
                    0.0,
                    acc,
                    None,
                    prices,
                    reference,
                )
            )
    return tuple(units)


def _gpu_prices(
    key: _Key, acc: Accelerator, offers: list[Offer], per_machine: int
) -> dict[Acquisition, Price]:
    """Prices of a GPU in machines of this size, owning included where it has a price."""
    fit = [o for o in offers if o.gpus_per_instance in (1, per_machine)]
    prices = _prices(fit, per_machine, acc.form_factor.startswith("SXM"), key.today)
    if "on_demand" in prices:
        rent = prices["on_demand"].likely
        owner = gpu_owner(key.catalogue, acc.sku, key.months, key.location, rent, key.terms)
        if owner is not None:
            prices["buy"] = _owned_price(owner)
    return prices


def _lowest_rent(prices: Iterable[dict[Acquisition, Price]]) -> float:
    """Lowest hourly rent that is not spot."""
    return min(
        p.likely
        for terms in prices
        for name, p in terms.items()
        if p.basis == "hour" and name != "spot"
    )


def _owned_price(owner: Owner) -> Price:
    """Owning as a price by the month, of one machine at a planned use; its rows give the others."""
    low, high = owner.spread
    each = owner.usd_per_month(1, PLANNED_USE * HOURS_PER_MONTH) / owner.units_per_machine
    return Price("month", each * low, each, each * high, None, owner=owner)


def _prices(
    offers: list[Offer], per_machine: int, fabric: bool, today: date
) -> dict[Acquisition, Price]:
    """Price of a GPU on each of the terms that are offered.

    Whole machines with a fabric are priced from offers of whole machines only: a rate for single
    GPUs buys no fabric between machines. On demand and spot need two providers.
    """
    prices: dict[Acquisition, Price] = {}
    for acquisition, terms in OFFER_TERMS.items():
        of_terms = [o for o in offers if o.acquisition in terms]
        whole = [o for o in of_terms if o.gpus_per_instance == per_machine]
        if per_machine > 1 and (fabric or _sellers(whole) >= MIN_PROVIDERS):
            of_terms = whole
        quoted = any(o.kind == "quote" for o in of_terms)
        thin = _sellers(of_terms) < MIN_PROVIDERS and not quoted
        if acquisition in ("on_demand", "spot") and thin:
            continue
        price = market_price(of_terms, today)
        if price is not None:
            prices[acquisition] = price
    return prices


# Below this size a virtual machine is a commodity, and one provider's price stands for others'.
SMALL_VCPU = 16
# GB of memory per vCPU at which servers count as another class.
MEMORY_CLASSES = (3.0, 6.0, 12.0, 24.0)


def _cpu_class(offer: Offer) -> tuple[int, int]:
    """Servers that compete with one another: the same vCPU, and memory within a factor of two."""
    vcpu, memory = float(offer.vcpu or 1), float(offer.memory_gb or 0)
    return round(vcpu), sum(memory / vcpu >= mark for mark in MEMORY_CLASSES)


@lru_cache(maxsize=32)
def _cpu_units(key: _Key) -> tuple[Unit, ...]:
    catalogue, today = key.catalogue, key.today
    offers = [
        o
        for o in catalogue.offers
        if o.accelerator_sku is None
        and o.gpus_per_instance == 0
        and o.vcpu
        and o.memory_gb
        and o.rankable
        and allowed_region(o.region, key.location)
    ]
    on_demand = _without_superseded([o for o in offers if o.acquisition == "on_demand"], today)
    classes: dict[tuple[int, int], list[Offer]] = {}
    for offer in on_demand:
        classes.setdefault(_cpu_class(offer), []).append(offer)
    units = []
    largest = max(
        (o.memory_gb or 0 for c in classes.values() if _sellers(c) >= MIN_PROVIDERS for o in c),
        default=0,
    )
    for rivals in classes.values():
        # One provider's price is no market, but very large memories have one provider only.
        alone = _sellers(rivals) < MIN_PROVIDERS and (rivals[0].vcpu or 0) >= SMALL_VCPU
        if alone and max(o.memory_gb or 0 for o in rivals) <= largest:
            continue
        price = market_price(rivals, today)
        if price is None or price.ref is None:
            continue
        chosen = next(
            o for o in rivals if (o.provider, o.sku) == (price.ref.provider, price.ref.sku)
        )
        units.append(_cpu_unit(key, chosen, price, offers))
    return tuple(sorted(units, key=lambda u: u.vcpu))


def _sellers(offers: list[Offer]) -> int:
    """Providers that sell; an index of prices sells nothing."""
    return len({o.provider for o in offers if o.kind != "aggregator"})


def _without_superseded(offers: list[Offer], today: date) -> list[Offer]:
    """Young offers, and old ones only for sizes that no young one covers (large memories)."""
    young = [o for o in offers if o.freshness(today) != "warn"]
    old = [
        o
        for o in offers
        if o.freshness(today) == "warn"
        and not any(
            (y.vcpu or 0) >= (o.vcpu or 0) and (y.memory_gb or 0) >= (o.memory_gb or 0)
            for y in young
        )
    ]
    return young + old


def _cpu_unit(key: _Key, offer: Offer, on_demand: Price, offers: list[Offer]) -> Unit:
    """One class of servers with its price on every term."""
    catalogue = key.catalogue
    vcpu, memory = float(offer.vcpu or 0), float(offer.memory_gb or 0)
    prices: dict[Acquisition, Price] = {"on_demand": on_demand}
    spot = [o for o in offers if o.acquisition == "spot" and _cpu_class(o) == _cpu_class(offer)]
    cheap = market_price(spot, key.today)
    if cheap is not None and cheap.likely < on_demand.likely:
        prices["spot"] = cheap
    terms: tuple[tuple[Acquisition, str], ...] = (("reserved_1y", "1y"), ("reserved_3y", "3y"))
    for acquisition, term in terms:
        discount = catalogue.running.get(f"disc-{offer.provider.lower()}-{term}")
        if discount is not None:
            prices[acquisition] = Price(
                "hour",
                on_demand.likely * (1 - discount.high),
                on_demand.likely * (1 - discount.likely),
                on_demand.likely * (1 - discount.low),
                on_demand.ref,
                on_demand.alternatives,
            )
    owner = server_owner(
        catalogue, vcpu, memory, key.months, key.location, on_demand.likely, key.terms
    )
    if owner is not None:
        prices["buy"] = _owned_price(owner)
    server = catalogue.cpu_servers.get(offer.cpu_server_id or "")
    network = (server.network_gbit_per_s or 0.0) if server is not None else 0.0
    return Unit(
        "cpu",
        offer.sku,
        f"{offer.provider} {offer.sku}",
        1,
        vcpu,
        memory,
        memory,
        network,
        None,
        server,
        prices,
        _lowest_rent([prices]),
    )


def placements(
    stages: tuple[Stage, ...],
) -> list[tuple[Placement, tuple[Literal["gpu", "cpu"], ...]]]:
    """Every assignment of the stages to hardware; with one stage there is no hybrid."""
    found: list[tuple[Placement, tuple[Literal["gpu", "cpu"], ...]]] = []
    for assignment in product(("gpu", "cpu"), repeat=len(stages)):
        kinds = set(assignment)
        name: Placement = "hybrid" if len(kinds) == 2 else ("gpu" if "gpu" in kinds else "cpu")
        found.append((name, assignment))  # type: ignore[arg-type]
    return found
