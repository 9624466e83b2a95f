"""Hardware, networks, prices and costs: typed rows with their source, date and confidence."""

from engine.catalogue.load import (
    Catalogue,
    check_data,
    check_report,
    load_catalogue,
    shipped_catalogue,
)
from engine.catalogue.models import (
    Accelerator,
    Claim,
    CpuServer,
    EgressTier,
    Network,
    Offer,
    Parameter,
    Provenance,
)
from engine.catalogue.update.store import PriceUpdate

__all__ = [
    "Accelerator",
    "Catalogue",
    "Claim",
    "CpuServer",
    "EgressTier",
    "Network",
    "Offer",
    "Parameter",
    "PriceUpdate",
    "Provenance",
    "check_data",
    "check_report",
    "load_catalogue",
    "shipped_catalogue",
]
