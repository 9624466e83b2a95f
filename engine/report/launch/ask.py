"""What a launch kit is asked for, beside the plan: names, machines, folders and the forecast."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from engine.errors import InputError
from engine.estimate.shape import ModelShape
from engine.report.launch.quote import one_line, plain_text, slug
from engine.report.launch.tables import Network

_BUCKET = re.compile(r"(s3|gs|r2|nebius)://[a-z0-9][a-z0-9._-]{1,62}(/[A-Za-z0-9._/-]*)?")
# The hub knows models by who published them: a name alone is of nobody, or of no release at all.
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_QUEUE = re.compile(r"[A-Za-z0-9][\w.-]{0,62}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
LARGEST_CONFIG = 1_000_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the estimates say of the plan: seconds of a step with 80% interval, GiB of a GPU.

    memory_items : GiB by item, as `engine.estimate.memory.as_items` names them; may be empty
    calibrated : whether published steps on this hardware stand behind the time
    """

    step_s: float
    step_low_s: float
    step_high_s: float
    memory_gib: float
    usable_gib: float
    memory_items: Mapping[str, float] = field(default_factory=dict)
    calibrated: bool = True

    def __post_init__(self) -> None:
        numbers = (self.step_low_s, self.step_s, self.step_high_s, self.memory_gib, self.usable_gib)
        if not all(math.isfinite(x) and x > 0 for x in numbers):
            raise InputError("is not positive", where="forecast", right="seconds and GiB above 0")
        if not self.step_low_s <= self.step_s <= self.step_high_s:
            raise InputError("is not in order", where="forecast", right="low, likely, high")


@dataclass(frozen=True, slots=True)
class LaunchAsk:
    """The job and the machines of one launch kit.

    run_name : any text; job queues get a short form of it
    shape : the model's widths
    gpu : sku of the catalogue
    gpus_per_node, nodes : their product is the plan's number of GPUs
    network : kind of that between nodes, of `network_kind`; none for a single node
    dataset : folder (for Megatron-LM: prefix) that every node sees, or a bucket
    tokens : of the whole run
    checkpoint_minutes : of work between saves; None for what loses least, as the reliability page
        has it
    time_limit_hours : of one job of the queue
    model : id on the hub or a folder, where the weights or the configuration come from
    config : text of the model's config.json, when there is one
    tokenizer : id or folder; the model's own when empty
    checkpoint_dir : folder that every node sees and that outlives them, or a bucket
    cloud, region : provider as the catalogue names it; empty for machines of one's own
    partition, account : of the job queue
    subnet_manager_host : the one machine that manages an InfiniBand fabric of one's own; empty
        where a switch does
    expected_bus_gb_per_s : measured all-reduce of this network, when the catalogue has it
    learning_rate : peak; None takes a published one for the model's size

    Raises
    ------
    InputError : for numbers that make no sense and text that no file of the kit could carry
    """

    run_name: str
    shape: ModelShape
    gpu: str
    gpus_per_node: int
    nodes: int
    network: Network
    dataset: str
    tokens: float
    checkpoint_minutes: float | None
    time_limit_hours: float
    forecast: Forecast
    model: str = ""
    config: str = ""
    tokenizer: str = ""
    checkpoint_dir: str = "/shared/checkpoints"
    cloud: str = ""
    region: str = ""
    spot: bool = False
    partition: str = ""
    account: str = ""
    subnet_manager_host: str = ""
    expected_bus_gb_per_s: float | None = None
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("gpus_per_node", "nodes"):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)} can't be used", where=name, right="1 up")
        for name in ("tokens", "time_limit_hours"):
            self._positive(name, getattr(self, name))
        for name in ("checkpoint_minutes", "expected_bus_gb_per_s", "learning_rate"):
            if getattr(self, name) is not None:
                self._positive(name, getattr(self, name))
        if self.network not in get_args(Network):
            raise InputError(f"no network {self.network!r}", where="network",
                             right=", ".join(get_args(Network)))  # fmt: skip
        if self.nodes > 1 and self.network == "none":
            raise InputError("several nodes need one", where="network", right="how they are joined")
        self._texts()

    def _positive(self, name: str, value: float) -> None:
        if not (math.isfinite(value) and 0 < value < 1e18):
            raise InputError(f"{value} can't be used", where=name, right="above 0")

    def _texts(self) -> None:
        for name in ("dataset", "checkpoint_dir"):
            text = plain_text(getattr(self, name), name)
            if is_bucket(text) or (text.startswith("/") and text.strip("/")):
                continue
            raise InputError(f"{text[:60]!r} can't be used", where=name,
                             right="a full path (/shared/data) or s3://bucket/folder")  # fmt: skip
        patterns = {"partition": _QUEUE, "account": _QUEUE, "subnet_manager_host": _HOST,
                    "region": _REGION}  # fmt: skip
        for name, pattern in patterns.items():
            text = getattr(self, name)
            if text and not pattern.fullmatch(text):
                raise InputError(f"{text[:60]!r} can't be used", where=name,
                                 right="letters, digits, dots and hyphens")  # fmt: skip
        for name in ("model", "tokenizer"):
            text = plain_text(getattr(self, name), name)
            if text and not (text.startswith("/") or _MODEL.fullmatch(text)):
                raise InputError(f"{text[:60]!r} can't be used", where=name,
                                 right="an id such as org/name, or a full path")  # fmt: skip
        self.config_data()

    def config_data(self) -> dict[str, Any]:
        """The model's configuration as an object; empty when none was given."""
        if not self.config.strip():
            return {}
        if len(self.config) > LARGEST_CONFIG:
            raise InputError(f"has {len(self.config):,} characters", where="config",
                             right="a config.json of a few kB")  # fmt: skip
        try:
            data = json.loads(self.config)
        except (ValueError, RecursionError):
            raise InputError("is no valid JSON", where="config",
                             right="the model's config.json") from None  # fmt: skip
        if not isinstance(data, dict):
            raise InputError("is no object", where="config", right="the model's config.json")
        return data

    @property
    def title(self) -> str:
        """The run's name on one line."""
        return one_line(self.run_name) or "Training run"

    @property
    def slug(self) -> str:
        """The run's name as job queues and clouds take it."""
        return slug(self.run_name)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return self.gpus_per_node * self.nodes


def is_bucket(text: str) -> bool:
    """Whether the place is an object store that SkyPilot can mount."""
    return _BUCKET.fullmatch(text) is not None
