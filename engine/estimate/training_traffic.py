"""What one GPU sends in a training step, by the split of the job that asks for it.

The sizes are those from which `training.py` takes its seconds; a ring sends (n − 1)/n of them for a
gather and twice that for a sum, and experts are reached directly. All are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.estimate.collectives import Array, all_reduce_volume, ring_share
from engine.estimate.training import (
    Parameters,
    StepInputs,
    context_size,
    exchange_ranks,
    expert_calls,
    gradient_bytes,
    groups_held,
    passed_size,
    sharded_bytes,
    tensor_calls,
    tensor_size,
)

SPLITS = ("tensor", "context", "expert", "pipeline", "data")


def sent_bytes(r: StepInputs, p: Parameters) -> Mapping[str, Array]:
    """Bytes that a GPU sends in a step, by `SPLITS`; 0 where nothing is split.

    pipeline : of a stage with a neighbour on both sides
    data : between copies of the model, and where states are sharded among them
    """
    tokens = r.micro_batch * r.seq / r.cp
    n = r.layers / r.pp * r.micro_batches
    tensor = tensor_calls(r) * all_reduce_volume(tensor_size(r, tokens), r.tp)
    spread = (r.experts > 1) & (r.ep > 1)
    expert = expert_calls(r) * passed_size(r, tokens) * r.routed * ring_share(r.ep)
    pipeline = 2.0 * r.vp * passed_size(r, tokens) * r.micro_batches
    return {
        "tensor": np.asarray(tensor * n),
        "context": np.asarray(context_size(r, tokens) * n),
        "expert": np.asarray(np.where(spread, expert * n, 0.0)),
        "pipeline": np.asarray(np.where(r.pp > 1, pipeline, 0.0)),
        "data": np.asarray(_between_data_ranks(r, p)),
    }


def _between_data_ranks(r: StepInputs, p: Parameters) -> Array:
    shared, experts = groups_held(r)
    ranks, copies = exchange_ranks(r)
    moved = shared * ring_share(ranks) + np.where(r.experts > 1, experts * ring_share(copies), 0.0)
    # States that are sharded inside a node: each rank sums its shard over the nodes in 32 bits.
    shards = np.maximum(r.shard_ranks, 1.0)
    size = np.where(r.lora > 0, 0.01, 1.0) * shared / shards
    between = all_reduce_volume(4.0 * size, np.maximum(r.dp * r.cp / shards, 1.0))
    full = sharded_bytes(r, p) * moved * r.micro_batches + between
    return np.asarray(np.where(r.full_shard > 0, full, gradient_bytes(r, p) * moved))
