"""The kit's tables: drivers and names by GPU, names of clouds, usual settings of a training run."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from engine.errors import InputError

Network = Literal["infiniband", "roce", "efa", "ethernet", "provider", "none"]
DATA = Path(__file__).resolve().parents[3] / "data"


@dataclass(frozen=True, slots=True)
class Gpu:
    """What setting up machines with a GPU depends on.

    skypilot : its name there; empty where none is known
    driver_branch : of NVIDIA's driver; empty where the machine's image brings it
    open_modules : whether the open kernel modules drive it
    fabric_manager : whether the board has switches that need the manager
    fabric_packages : further packages that those need, from NVIDIA's own repository
    bf16 : whether it multiplies in bf16; older ones make it up from 32 bits
    fp8_recipe : scaling for 8 bits in Megatron-LM; empty where the GPU has none
    torch_below : first release of PyTorch whose usual build leaves the GPU out; empty for none
    """

    sku: str
    skypilot: str
    driver_branch: str
    open_modules: bool
    fabric_manager: bool
    fabric_packages: tuple[str, ...]
    bf16: bool
    fp8_recipe: str
    torch_below: str

    @property
    def nvidia(self) -> bool:
        """Whether it is NVIDIA's; AMD's skus begin with mi."""
        return not self.sku.startswith("mi")


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@lru_cache(maxsize=1)
def _gpus() -> dict[str, Gpu]:
    return {
        r["sku"]: Gpu(
            r["sku"], r["skypilot"], r["driver_branch"], r["open_modules"] == "1",
            r["fabric_manager"] == "1", tuple(r["fabric_packages"].split()),
            r["bf16"] == "1", r["fp8_recipe"],
            r["torch_below"],
        )
        for r in _rows("launch_gpus.csv")
    }  # fmt: skip


def gpu_of(sku: str) -> Gpu:
    """The GPU of the catalogue.

    Raises
    ------
    InputError : for accelerators that PyTorch's CUDA and ROCm builds don't drive
    """
    found = _gpus().get(sku)
    if found is None:
        raise InputError(
            f"there is no launch kit for {sku[:60]!r}", where="gpu",
            right="a GPU of NVIDIA or AMD; TPUs, Trainium and Gaudi have launchers of their own",
        )  # fmt: skip
    return found


@lru_cache(maxsize=1)
def _names() -> dict[tuple[str, str], str]:
    return {(r["provider"], r["sku"]): r["skypilot"] for r in _rows("launch_gpu_names.csv")}


def skypilot_gpu(gpu: Gpu, provider: str) -> str:
    """The GPU's name in SkyPilot at a provider; some call another card by the usual name."""
    return _names().get((provider, gpu.sku), gpu.skypilot)


@dataclass(frozen=True, slots=True)
class Cloud:
    """A provider as SkyPilot names it; its best tier of network, empty where there is one only.

    lacks : what SkyPilot can't do there: `nodes` that work together, `spot` machines, `buckets` as
        folders, putting machines `down` by themselves
    fabric : kind of network between its machines that no other provider has; empty for a usual one
    """

    skypilot: str = ""
    network_tier: str = ""
    fabric: str = ""
    lacks: frozenset[str] = frozenset()

    def joins_by(self, network: Network) -> Network:
        """How NCCL reaches other machines there, for one that was planned with this network."""
        by_tcp = network == "ethernet" and self.fabric != "provider"
        if not self.fabric or network == "none" or by_tcp:
            return network
        return cast(Network, self.fabric)


@lru_cache(maxsize=1)
def _clouds() -> dict[str, Cloud]:
    return {
        r["provider"]: Cloud(
            r["skypilot"], r["network_tier"], r["fabric"], frozenset(r["lacks"].split())
        )
        for r in _rows("launch_clouds.csv")
    }


def cloud_of(provider: str) -> Cloud:
    """A provider of the catalogue; one without a name where SkyPilot knows none."""
    return _clouds().get(provider, Cloud())


def owner_of(network: Network) -> str:
    """The one provider that has this kind of network; empty where many have."""
    return next((name for name, cloud in _clouds().items() if cloud.fabric == network), "")


@lru_cache(maxsize=1)
def _networks() -> dict[str, Network]:
    return {r["network"]: cast(Network, r["kind"]) for r in _rows("launch_networks.csv")}


def network_kind(network: str) -> Network:
    """Kind of one of the catalogue's networks between nodes, as `LaunchAsk.network` takes it.

    Raises
    ------
    InputError : for links inside a node, and networks of accelerators without a kit
    """
    found = _networks().get(network)
    if found is None:
        raise InputError(f"{network[:60]!r} joins no nodes of GPUs", where="network",
                         right=", ".join(_networks()))  # fmt: skip
    return found


@lru_cache(maxsize=1)
def _settings() -> list[tuple[str, float, float]]:
    return [
        (r["id"], float(r["up_to_params_b"] or "inf"), float(r["value"]))
        for r in _rows("launch_settings.csv")
    ]


def setting(name: str, params_b: float = 0.0) -> float:
    """A usual setting, for a model of so many billions of parameters."""
    return next(v for row, up_to, v in _settings() if row == name and params_b <= up_to)


def whole(name: str) -> int:
    """A usual setting that is a whole number."""
    return int(setting(name))
