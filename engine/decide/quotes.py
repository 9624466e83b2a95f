"""The user's own quotes as offers that rank beside the catalogue's."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from engine.catalogue import Catalogue, Offer, Provenance
from engine.workload.workload import Workload

PROVIDER = "Your quote"


def with_quotes(
    catalogue: Catalogue, workload: Workload, today: date
) -> tuple[Catalogue, tuple[str, ...]]:
    """The catalogue with the workload's quotes, and what could not be used of them, in words."""
    if not workload.quotes:
        return catalogue, ()
    return _with_quotes(_Same(catalogue), workload.quotes, today)


class _Same:
    """A catalogue as a cache key: the same object, not an equal one."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def __hash__(self) -> int:
        return id(self.catalogue)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.catalogue is self.catalogue


@lru_cache(maxsize=64)
def _with_quotes(
    key: _Same, quotes: tuple[str, ...], today: date
) -> tuple[Catalogue, tuple[str, ...]]:
    catalogue = key.catalogue
    offers, unknown = [], []
    for quote in quotes:
        offer = _offer(catalogue, quote, today)
        if offer is None:
            name = quote.split(":")[0]
            unknown.append(
                f"Your quote for {name} is left out: the catalogue has no such hardware; give an "
                "accelerator's id from the price page, or cpu-<vCPU>-<GB> for a server."
            )
        else:
            offers += offer
    return catalogue.with_quotes(offers), tuple(unknown)


def _offer(catalogue: Catalogue, quote: str, today: date) -> list[Offer] | None:
    """The offers that a quote stands for: one GPU and a whole machine of them, or one server."""
    name, terms, usd = quote.rsplit(":", 2)
    price = float(usd)
    seen = Provenance(source="your quote", as_of=today, confidence="medium")
    if name.startswith("cpu-"):
        parts = name.split("-")[1:]
        if len(parts) != 2 or not all(p.isdigit() and int(p) > 0 for p in parts):
            return None
        return [
            Offer.model_validate(
                {
                    "provider": PROVIDER, "sku": name, "vcpu": int(parts[0]),
                    "memory_gb": int(parts[1]), "acquisition": terms,
                    "usd_per_instance_hour": price, "kind": "quote", "provenance": seen,
                }
            )
        ]  # fmt: skip
    accelerator = catalogue.accelerators.get(name)
    if accelerator is None:
        return None
    return [
        Offer.model_validate(
            {
                "provider": PROVIDER, "sku": f"{n} × {accelerator.name}", "accelerator_sku": name,
                "gpus_per_instance": n, "acquisition": terms, "usd_per_instance_hour": price * n,
                "usd_per_gpu_hour": price, "kind": "quote", "provenance": seen,
            }
        )
        for n in sorted({1, max(accelerator.max_per_node, 1)})
    ]  # fmt: skip
