"""The catalogue: all tables of a folder, loaded and checked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from engine.catalogue import checks, egress, hardware_checks, offer_checks
from engine.catalogue.limits import NEEDED
from engine.catalogue.models import (
    Accelerator,
    Claim,
    CpuServer,
    EgressTier,
    Network,
    Offer,
    Parameter,
    Row,
)
from engine.catalogue.read import parse, rows
from engine.catalogue.update import store
from engine.catalogue.update.store import PriceUpdate
from engine.errors import DataError, InputError

DATA = Path(__file__).resolve().parents[2] / "data"
# The day of the shipped tables: a clock set back must not make them rows of the future.
SHIPPED = date(2026, 12, 1)
R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """Hardware, prices and named numbers, by their ids."""

    accelerators: dict[str, Accelerator]
    cpu_servers: dict[str, CpuServer]
    networks: dict[str, Network]
    offers: tuple[Offer, ...]
    capital: dict[str, Parameter]
    running: dict[str, Parameter]
    parameters: dict[str, Parameter]
    claims: dict[str, Claim]
    # The refreshed table that is laid over the shipped prices, or why it is not.
    update: PriceUpdate = field(default_factory=PriceUpdate)

    def offers_for(
        self, accelerator_sku: str, acquisition: str | None = None, rankable_only: bool = True
    ) -> list[Offer]:
        """Offers of an accelerator, cheapest per GPU-hour first."""
        found = [
            o
            for o in self.offers
            if o.accelerator_sku == accelerator_sku
            and (acquisition is None or o.acquisition == acquisition)
            and (o.rankable or not rankable_only)
        ]
        # A quote may state the price of the instance alone.
        return sorted(
            found,
            key=lambda o: (
                o.usd_per_gpu_hour or o.usd_per_instance_hour / max(o.gpus_per_instance, 1)
            ),
        )

    def cpu_offers(
        self, min_vcpu: float = 0, min_memory_gb: float = 0, acquisition: str = "on_demand"
    ) -> list[Offer]:
        """Rankable offers of CPU servers of at least this size, cheapest first."""
        found = [
            o
            for o in self.offers
            if o.accelerator_sku is None
            and o.rankable
            and o.acquisition == acquisition
            and (o.vcpu or 0) >= min_vcpu
            and (o.memory_gb or 0) >= min_memory_gb
        ]
        return sorted(found, key=lambda o: o.usd_per_instance_hour)

    def with_quotes(self, quotes: Iterable[Offer]) -> Catalogue:
        """The same catalogue with the user's own quotes beside its offers."""
        return replace(self, offers=(*self.offers, *quotes))

    def egress_tiers(self, provider: str) -> tuple[EgressTier, ...]:
        """Prices of a provider's traffic to the internet by amount; empty when none is known."""
        return egress.tiers(self.running, provider)

    def egress_usd(self, provider: str, gb_per_month: float) -> float:
        """US dollars a month for traffic to the internet: each GB at the price of its tier.

        What some providers include by the server is not subtracted.

        Raises
        ------
        InputError : no price is known, which is not the same as free; or not an amount
        """
        tiers = self.egress_tiers(provider)
        if not tiers:
            raise InputError(
                f"no price of outgoing traffic is known for {provider!r}",
                where="provider",
                right="one of those in running_costs.csv, or a quote",
            )
        if not 0 <= gb_per_month < float("inf"):
            raise InputError(f"{gb_per_month} GB", where="egress_gb", right="0 or more")
        # The tiers count what is left after the free part, as the cost engine does.
        paid = gb_per_month - egress.free_gb(self.running, provider)
        return egress.monthly_usd(tiers, max(paid, 0.0))


@dataclass(slots=True)
class _Loading:
    """Rows read so far and the faults found."""

    folder: Path
    today: date
    faults: list[DataError] = field(default_factory=list)

    def table(
        self,
        name: str,
        model: type[R],
        key: str | None,
        check: Callable[[R, Path, int], list[DataError]] | None = None,
    ) -> list[tuple[int, R]]:
        """All rows of a table that can be used; the faults of the others are kept."""
        file = self.folder / name
        found: list[tuple[int, R]] = []
        seen: set[str] = set()
        try:
            for line, cells in rows(file):
                try:
                    row = parse(model, cells, file, line, self.today)
                except DataError as fault:
                    self.faults.append(fault)
                    continue
                if key is not None:
                    name_ = str(getattr(row, key))
                    if name_ in seen:
                        self.faults.append(
                            DataError(
                                f"{name_!r} stands twice",
                                file=file,
                                line=line,
                                column=key,
                                right="another name",
                            )
                        )
                    seen.add(name_)
                if check is not None:
                    self.faults += check(row, file, line)
                found.append((line, row))
        except DataError as fault:
            self.faults.append(fault)
        return found


def _load(folder: Path, today: date) -> tuple[Catalogue, list[DataError]]:
    loading = _Loading(folder, today)
    accelerators = loading.table("accelerators.csv", Accelerator, "sku", checks.accelerator)
    servers = loading.table("cpu_servers.csv", CpuServer, "id", hardware_checks.server)
    networks = loading.table("networks.csv", Network, "id", hardware_checks.network)
    offers = loading.table("offers.csv", Offer, None, offer_checks.instance_price)
    running = loading.table("running_costs.csv", Parameter, "id", checks.ordered)
    catalogue = Catalogue(
        accelerators={a.sku: a for _, a in accelerators},
        cpu_servers={s.id: s for _, s in servers},
        networks={n.id: n for _, n in networks},
        offers=tuple(o for _, o in offers),
        capital=_named(loading, "capital.csv"),
        running={p.id: p for _, p in running},
        parameters=_named(loading, "parameters.csv"),
        claims={c.id: c for _, c in loading.table("claims.csv", Claim, "id")},
    )
    file = folder / "offers.csv"
    numbers = catalogue.parameters
    for name in NEEDED:
        if name not in numbers:
            loading.faults.append(
                DataError(
                    f"{name} is missing",
                    file=folder / "parameters.csv",
                    line=1,
                    column="id",
                    right="a row of that id",
                )
            )
    loading.faults += [
        *hardware_checks.generation(accelerators, folder / "accelerators.csv"),
        *egress.ladder(running, folder / "running_costs.csv"),
        *offer_checks.known(offers, catalogue.accelerators, catalogue.cpu_servers, file),
        *price_faults(offers, file, numbers),
    ]
    return catalogue, loading.faults


def price_faults(
    offers: Sequence[tuple[int, Offer]], file: Path, numbers: dict[str, Parameter]
) -> list[DataError]:
    """Faults of prices beside each other; `numbers` has the limits by which they are judged."""
    faults = [*offer_checks.twice(offers, file), *offer_checks.stale(offers, file)]
    if all(name in numbers for name in NEEDED):
        faults += [
            *offer_checks.outliers(
                offers,
                file,
                numbers["price_outlier_factor"].likely,
                numbers["price_low_outlier_factor"].likely,
            ),
            *offer_checks.siblings(offers, file, numbers["price_sibling_factor"].likely),
        ]
    return faults


def _named(loading: _Loading, name: str) -> dict[str, Parameter]:
    return {p.id: p for _, p in loading.table(name, Parameter, "id", checks.ordered)}


def _today() -> date:
    return max(date.today(), SHIPPED)


def load_catalogue(folder: Path | None = None) -> Catalogue:
    """The catalogue of a folder; when omitted the shipped one with the prices in use.

    The prices in use are the shipped ones under the newest refreshed table, if there is one that
    has no fault. The result is kept: a running app sees a refresh after its next start.

    Raises
    ------
    DataError : the first fault, with file, line, column and what would be right
    """
    return _in_use(store.folder()) if folder is None else _checked(folder)


def shipped_catalogue() -> Catalogue:
    """The shipped catalogue without any refreshed price (kept after the first call).

    Raises
    ------
    DataError : the first fault
    """
    return _shipped()


@lru_cache(maxsize=4)
def _in_use(place: Path) -> Catalogue:
    newest = store.newest(place)
    return _shipped() if newest is None else with_update(_shipped(), newest, _today())


def with_update(catalogue: Catalogue, file: Path, today: date) -> Catalogue:
    """The catalogue with a refreshed table laid over its prices.

    A table with a fault is refused as a whole: the catalogue keeps its prices and says why.
    """
    day = store.day_of(file)
    try:
        lines = store.read(file, today)
        for line, offer in lines:
            for fault in offer_checks.instance_price(offer, file, line):
                raise fault
        merged, used = store.overlay(catalogue.offers, lines)
        for fault in price_faults(merged, file, catalogue.parameters):
            raise fault
    except DataError as fault:
        return replace(catalogue, update=PriceUpdate(file.name, day, 0, str(fault)))
    offers = tuple(offer for _, offer in merged)
    return replace(catalogue, offers=offers, update=PriceUpdate(file.name, day, used))


@lru_cache(maxsize=1)
def _shipped() -> Catalogue:
    return _checked(DATA)


def _checked(folder: Path) -> Catalogue:
    catalogue, faults = _load(folder, _today())
    if faults:
        raise faults[0]
    return catalogue


def check_data(folder: Path | None = None) -> list[DataError]:
    """Every fault of the tables of a folder."""
    return _load(folder or DATA, _today())[1]


def check_report(folder: Path | None = None) -> tuple[str, list[DataError]]:
    """The tables with their rows in words, and every fault."""
    catalogue, faults = _load(folder or DATA, _today())
    today = _today()
    ranked = [o for o in catalogue.offers if o.rankable]
    old = sum(o.freshness(today) == "warn" for o in ranked)
    lines = [
        f"accelerators   {len(catalogue.accelerators):5d} rows",
        f"CPU servers    {len(catalogue.cpu_servers):5d} rows",
        f"networks       {len(catalogue.networks):5d} rows",
        f"offers         {len(catalogue.offers):5d} rows, {len(ranked)} of them rank, "
        f"{old} of those are too old to plan with",
        f"capital        {len(catalogue.capital):5d} rows",
        f"running costs  {len(catalogue.running):5d} rows",
        f"parameters     {len(catalogue.parameters):5d} rows",
        f"claims         {len(catalogue.claims):5d} rows",
    ]
    if folder is None and (update := load_catalogue().update).file:
        lines.append(f"refreshed      {update.rows:5d} offers, from {update.file}")
        if update.fault:
            lines.append(f"  not in use, the shipped prices are: {update.fault}")
    lines.append("No fault found." if not faults else f"{len(faults)} faults:")
    return "\n".join([*lines, *(f"  {fault}" for fault in faults)]), faults
