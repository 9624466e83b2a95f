"""What is fitted of the serving model: each efficiency's prior, and by what it may differ.

The freedom of a base value is the standard deviation of its logarithm; an effect (of a GPU
generation, an engine, a precision, or two of them together) multiplies it and is drawn to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.calibrate.serving_classes import cache_of, host_of, kind_of
from engine.calibrate.serving_rows import Table
from engine.estimate.queueing import Array
from engine.estimate.serving import KNOBS, Efficiencies

# Standard deviation of the logarithm of each kind of effect.
SPREAD = {
    "gpu": 0.20, "host": 0.4, "engine": 0.4, "bits": 0.15, "cache": 0.25, "pair": 0.2,
    "lengths": 1.0, "fixed": 3.0, "kind": 0.25,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Knob:
    """Prior of one efficiency: value, freedom, unit, kinds of effects, and what it means."""

    prior: float
    freedom: float
    unit: str
    effects: tuple[str, ...]
    meaning: str


# Effects that are expected to differ from none before any row is seen. Users whose prompts and
# answers all have one length wait for all others. TensorRT-LLM takes in 8,192 tokens a step since
# 0.11; before that its builder advised no more than 16,384.
EXPECTED = {"gathered.fixed.lengths": 1.0 / 0.002, "step_tokens.engine.trtllm-nim": 2.0}
SURE = 0.3  # standard deviation of the logarithm of an effect that physics expects
ALL = ("gpu", "engine", "bits")
SPECS: dict[str, Knob] = {
    "weight_read": Knob(0.8, 0.2, "share of bandwidth", (*ALL, "pair"), "reading weights"),
    "kv_read": Knob(0.7, 0.3, "share of bandwidth",
                    ("kind", "cache", "gpu", "engine", "pair"), "reading the cache"),
    "matmul": Knob(0.6, 0.3, "share of peak", (*ALL, "pair"), "products of prefill"),
    "matmul_decode": Knob(0.8, 0.4, "times", ("gpu", "engine", "bits"),
                          "products of decoding against those of prefill"),
    "attention": Knob(0.35, 0.4, "share of peak", ("gpu", "engine"),
                      "attention of prefill"),
    "narrow": Knob(200, 0.7, "elements", ("gpu", "engine"),
                   "width at which products take twice their ideal time"),
    "roof": Knob(3, 0.3, "power", ("engine",), "overlap of reading and computing"),
    "expert_read": Knob(0.8, 0.3, "times", ("kind", "gpu", "engine", "pair", "bits"),
                        "reading routed experts against dense layers"),
    "expert_matmul": Knob(0.6, 0.4, "times",
                          ("kind", "gpu", "engine", "bits"),
                          "products of routed experts against dense layers"),
    "step_us": Knob(800, 0.7, "us", ("gpu", "engine", "pair"), "overhead of a step"),
    "layer_us": Knob(12, 0.6, "us", ("kind", "gpu", "engine", "pair"),
                     "overhead of a layer and step"),
    "sequence_us": Knob(8, 1.0, "us", ("gpu", "engine"),
                        "overhead of a sequence and step"),
    "allreduce_us": Knob(16, 0.5, "us", ("gpu", "engine"), "one all-reduce, fast link"),
    "pcie_allreduce": Knob(3.5, 0.4, "times", (), "one all-reduce over PCIe"),
    "link_share": Knob(0.3, 0.4, "share of bandwidth", ("gpu",), "links in all-reduces"),
    "pcie_share": Knob(0.5, 0.3, "share of bandwidth", (), "host links in all-reduces"),
    "prefill_ms": Knob(8, 1.0, "ms", ("gpu", "host", "engine", "pair"), "overhead of a request"),
    "prefill_token_us": Knob(0.2, 1.0, "us", ("gpu", "engine"),
                             "overhead of a prompt token"),
    "interleave": Knob(0.7, 0.4, "times", ("lengths", "engine"),
                       "share of others' prefill in the time of a token"),
    "contention": Knob(0.7, 0.5, "times", ("lengths", "engine"),
                       "wait for prompts of others that come at random"),
    # A run begins with all prompts at once: half of the others' are waited for by the first of
    # the n requests that a user sends, 1/(2n) of them on average. InferenceX's scripts send 10.
    "first_wave": Knob(0.05, 0.4, "prefills", ("lengths", "engine"),
                       "prefills waited for, of each other user, as a run begins"),
    # Only where all lengths are the same do answers begin and end together.
    "gathered": Knob(0.002, 0.05, "prefills", ("fixed",),
                     "prefills waited for, of each other user whose answer ends at the same time"),
    "front_ms": Knob(1.0, 0.5, "ms", (), "time between two requests that the front end passes on"),
    "step_tokens": Knob(8192, 0.2, "tokens", ("engine",), "tokens of prompts that a step takes in"),
    "saturated": Knob(1.1, 0.2, "times", ("gpu", "engine"),
                      "time of a full batch against the ideal"),
    "weight_memory": Knob(1.05, 0.05, "times", (), "memory held over the weights' own"),
    "cache_memory": Knob(1.05, 0.05, "times", (), "memory held over the cache's own"),
    "working": Knob(4, 0.5, "copies", (), "hidden states of a step's tokens in memory"),
    "sampling": Knob(4, 0.7, "copies", (), "logits of a step's sequences in memory"),
    "engine_gib": Knob(1, 0.5, "GiB", (), "context, libraries, graphs"),
    "group_gib": Knob(0.5, 0.7, "GiB", (), "more when GPUs share a model"),
    "peer_gib": Knob(0.5, 0.7, "GiB", (), "more per further GPU that shares a model"),
}  # fmt: skip
MEMORY = (
    "weight_memory", "cache_memory", "working", "sampling", "engine_gib", "group_gib", "peer_gib",
)  # fmt: skip
# What only a closed loop shows.
CLOSED = ("interleave", "contention", "first_wave", "gathered", "front_ms", "step_tokens")
FITTED = tuple(k for k in KNOBS if k not in MEMORY)


@dataclass(frozen=True, slots=True)
class Design:
    """Which parameters make up each efficiency of each row: names, priors, and their places."""

    names: tuple[str, ...]
    mean: Array
    freedom: Array
    places: dict[str, NDArray[np.intp]]

    def efficiencies(self, x: Array, memory: Mapping[str, float]) -> Efficiencies:
        """Efficiencies of every row, from logarithms of the parameters and those of memory."""
        padded = np.append(x, 0.0)
        found = {k: np.exp(padded[p].sum(axis=0)) for k, p in self.places.items()}
        return Efficiencies(**found, **memory)


def design_of(table: Table, names: tuple[str, ...] | None = None) -> Design:
    """The design of a table's rows; with `names` of a fit, effects it has not seen are none."""
    latent = np.asarray(np.asarray(table.network.cache_shards) == 1)
    experts = np.asarray(table.network.experts)
    cached = np.asarray(table.plan.kv_bytes)
    columns = {
        "gpu": table.generation,
        "engine": table.engine,
        "host": np.array([host_of(str(e)) for e in table.engine]),
        "bits": table.precision,
        "pair": np.array([f"{g}.{e}" for g, e in zip(table.generation, table.engine, strict=True)]),
        "kind": np.array([kind_of(s, e) for s, e in zip(latent, experts, strict=True)]),
        "cache": np.array(
            [f"{e}.{cache_of(b)}" for e, b in zip(table.engine, cached, strict=True)]
        ),
        "lengths": table.lengths,
        "fixed": np.where(table.lengths == "fixed", "lengths", ""),
    }
    closed = np.asarray(table.protocol == "closed_loop")
    routed = np.asarray(np.asarray(table.network.experts) > 1)
    many = np.asarray(np.asarray(table.plan.tp) > 1)
    used = {k: np.ones(len(table), dtype=bool) for k in FITTED}
    for knob in CLOSED:
        used[knob] = closed
    used["saturated"] = np.char.find(table.protocol.astype(str), "off") >= 0
    used["expert_read"] = used["expert_matmul"] = routed
    used["allreduce_us"] = used["link_share"] = many
    known: list[str] = [*FITTED, *EXPECTED] if names is None else list(names)
    index = {name: i for i, name in enumerate(known)}
    raw: dict[str, list[list[int]]] = {}
    for knob in FITTED:
        spec = SPECS[knob]
        parts = [[index[knob]] * len(table)]
        for effect in spec.effects:
            ids = []
            for value, here in zip(columns[effect], used[knob], strict=True):
                name = f"{knob}.{effect}.{value}"
                if not here or not value:
                    ids.append(-1)
                    continue
                if name not in index and names is None:
                    index[name] = len(known)
                    known.append(name)
                ids.append(index.get(name, -1))
            parts.append(ids)
        raw[knob] = parts
    last = len(known)
    places = {}
    for knob, parts in raw.items():
        ids_of = np.array(parts, dtype=np.intp)
        places[knob] = np.where(ids_of < 0, last, ids_of)
    mean = np.zeros(last)
    freedom = np.empty(last)
    for i, name in enumerate(known):
        knob, _, rest = name.partition(".")
        spec = SPECS[knob]
        if rest:
            # A knob that is known badly differs more between classes.
            mean[i] = np.log(EXPECTED.get(name, 1.0))
            freedom[i] = SPREAD[rest.split(".")[0]] * max(spec.freedom / 0.4, 0.5)
            freedom[i] = SURE if name in EXPECTED else freedom[i]
        else:
            mean[i], freedom[i] = np.log(spec.prior), spec.freedom
    return Design(tuple(known), mean, freedom, places)
