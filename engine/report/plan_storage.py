"""The prices of storage behind a service's cost: every offer of the kind, and the median taken."""

from __future__ import annotations

from datetime import date

from engine.catalogue import Catalogue
from engine.catalogue.models import Parameter, freshness_of
from engine.decide.storing import storage_usd_per_gb
from engine.report import words
from engine.report.plan import Cell, Column, Section, Table, age_cell
from engine.workload.answers import Kind

TITLES = {"block_storage": "block storage", "object_storage": "object storage"}


def storage_section(kind: Kind, catalogue: Catalogue, today: date) -> Section:
    """Space by the GB and month at each provider, cheapest first.

    kind : of the work; what a crawler gathers lies in object storage, all else on block storage
    """
    category = "object_storage" if kind is Kind.search else "block_storage"
    found = sorted(
        (p for p in catalogue.running.values() if p.category == category),
        key=lambda p: (p.likely, p.id),
    )
    columns = (
        Column("Storage", 2.6), Column("Provider", 1.2), Column("A GB and month", 1.2, "figure"),
        Column("Read on", 1.35), Column("Confidence", 1.05), Column("Source", 0.7, "source"),
    )  # fmt: skip
    rows = tuple(
        (
            p.description,
            p.provider,
            f"${words.number(p.likely)}",  # cents alone would hide half of it
            _age(p, today),
            p.provenance.confidence,
            p.provenance.source,
        )
        for p in found
    )
    median = f"${words.number(storage_usd_per_gb(catalogue, category))}"
    caption = (
        f"The space is taken at {median}, the median of these offers of {TITLES[category]}, "
        "whoever the machines are rented from."
    )
    return Section("Prices of storage", (Table(columns, rows, caption),), 2)


def _age(p: Parameter, today: date) -> Cell:
    days = max((today - p.provenance.as_of).days, 0)
    return age_cell(p.provenance.as_of, days, freshness_of(days))
