"""What the tests of serving ask: machines with prices, a chat service, its targets."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from engine.catalogue import load_catalogue
from engine.estimate.estimate import Estimate
from engine.estimate.serving_layouts import Machine, Precision, PriceTag
from engine.estimate.serving_plan import ServingAsk
from engine.estimate.serving_points import (
    CpuBox,
    Load,
    Targets,
)
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.traffic import traffic_of

CATALOGUE = load_catalogue()
TODAY = date(2026, 12, 2)
TAG = PriceTag("A", "on_demand", TODAY, 0, "fresh", "a test")
PRECISION = Precision(16.0, 2.0, "vllm-2025")
CHAT = Load(1000.0, 300.0)
USUAL = Targets(2.0, 0.1)


def gpu(sku: str, count: int = 1, usd: float = 3.0) -> Machine:
    acc = CATALOGUE.accelerators[sku]
    return Machine(
        sku, acc.name, "gpu", count, acc, None, Estimate(usd * 0.8, usd, usd * 1.25, "USD/h"), TAG
    )


def cpu(vcpu: float = 96.0, memory_gb: float = 384.0, usd: float = 5.0) -> Machine:
    price = Estimate(usd, usd, usd, "USD/h")
    return Machine(f"cpu-{vcpu:g}", "server", "cpu", 1, None, CpuBox(vcpu, memory_gb), price, TAG)


def ask(params_b: float = 8.0, rate: float = 10.0, **more: object) -> ServingAsk:
    base = ServingAsk(shape_from_size(params_b), CHAT, traffic_of(rate, "even"), USUAL, PRECISION)
    return replace(base, **more)  # type: ignore[arg-type]
