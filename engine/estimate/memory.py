"""Memory of one GPU during training, item by item [GiB].

References
----------
[1] Rajbhandari et al. 2020, arXiv 1910.02054: 16 bytes a parameter, sharded by ZeRO stage.
[2] Korthikanti et al. 2022, arXiv 2205.05198: activations by tensor, sequence parallelism and
    recomputation; the first pipeline stage holds p micro-batches of L/p layers.
[3] Megatron-LM README: distributed optimizer, 6 + 12/d bytes a parameter with fp32 gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
GIB = 2.0**30
# Context, communication libraries and what the allocator keeps beside the tensors [GiB].
CONTEXT_GIB = 1.6
FRAGMENTATION = 0.04


@dataclass(slots=True)
class MemoryInputs:
    """One row a plan; counts of parameters and elements, arrays of one length.

    expert_params : parameters of routed experts among `params`, split over `ep` ranks
    zero : ZeRO stage 0 to 3 (3 is FSDP's full shard); d : ranks that shard the states
    recompute : 0 none, 1 selective (attention core), 2 full
    weight_bytes : bytes of a frozen weight for LoRA (2, or about 0.56 for 4 bits with scales)
    """

    params: Array
    expert_params: Array
    layers: Array
    hidden: Array
    heads: Array
    q_width: Array
    kv_width: Array
    mlp_width: Array
    vocab: Array
    seq: Array
    micro_batch: Array
    tp: Array
    pp: Array
    cp: Array
    ep: Array
    d: Array
    zero: Array
    micro_batches: Array
    recompute: Array
    lora: Array
    adapter_share: Array
    weight_bytes: Array
    flash: Array
    megatron: Array


@dataclass(slots=True)
class MemoryBreakdown:
    """GiB of one GPU by item; `total` is what the driver would report at the peak."""

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    buffers: Array
    overhead: Array

    @property
    def total(self) -> Array:
        """All items together."""
        return np.asarray(
            self.weights + self.gradients + self.optimizer + self.activations + self.logits
            + self.buffers + self.overhead
        )  # fmt: skip


def training_memory(m: MemoryInputs) -> MemoryBreakdown:
    """Peak memory of the fullest GPU: the first pipeline stage, or the last with its logits."""
    embedding = m.vocab * m.hidden
    shared = m.params - m.expert_params
    stage = (shared - 2 * embedding) / m.pp + np.where(m.pp > 1, embedding, 2 * embedding)
    # Ranks that share a GPU's experts are fewer than those that share the rest: d·tp/ep.
    experts = m.expert_params / (m.pp * m.ep)
    expert_d = np.maximum(m.d * m.tp / m.ep, 1.0)
    one = np.maximum(stage, shared / m.pp * 0.9) / m.tp
    lora = m.lora > 0
    full_shard = m.zero >= 3
    held = one + experts

    def spread(applies: NDArray[np.bool_]) -> Array:
        # Parameters that a rank keeps of a state, sharded where it applies.
        return np.asarray(np.where(applies, one / m.d + experts / expert_d, held))

    weights = np.where(full_shard, spread(full_shard) * 4, held * 2)
    weights = np.where(lora, spread(full_shard) * m.weight_bytes, weights)
    # Megatron keeps gradients in 32 bits; the others in 16, sharded from stage 2 on.
    gradient_bytes = np.where(m.megatron > 0, 4.0, np.where(full_shard, 4.0, 2.0))
    gradients = gradient_bytes * spread(m.zero >= 2)
    states = np.where(m.zero >= 3, 8.0, 12.0) * spread(m.zero >= 1)
    trained = m.adapter_share * held
    gradients = np.where(lora, trained * 4, gradients)
    states = np.where(lora, trained * 12, states)
    layer = m.params / m.layers / m.tp
    buffers = np.where(full_shard, 2 * layer * 2 + np.where(lora, 0.0, layer * 4), 0.0)
    activations = _activations(m)
    logits = _logits(m)
    dynamic = (activations + logits) * FRAGMENTATION
    return MemoryBreakdown(
        weights / GIB, gradients / GIB, states / GIB, activations / GIB, logits / GIB,
        buffers / GIB, CONTEXT_GIB + dynamic / GIB,
    )  # fmt: skip


def _activations(m: MemoryInputs) -> Array:
    """Bytes of stored activations [2]: per token and layer, times the micro-batches in flight."""
    tokens = m.micro_batch * m.seq / m.cp
    width = 10 * m.hidden + 4 * m.q_width + 4 * m.kv_width + 2 * m.mlp_width
    core = np.where(m.flash > 0, 4 * m.heads, 5 * m.heads * m.seq)
    core = np.where(m.recompute >= 1, 0.0, core)
    a_layer = tokens * (width + core) / m.tp
    kept = np.where(m.recompute >= 2, 2 * tokens * m.hidden / np.sqrt(m.tp), a_layer)
    in_flight = np.minimum(m.pp, m.micro_batches)
    stored = kept * m.layers / m.pp * in_flight
    return np.asarray(stored + np.where(m.recompute >= 2, a_layer, 0.0))


def _logits(m: MemoryInputs) -> Array:
    """Bytes of the logits and their gradient in 32 bits, on the stage that has them."""
    tokens = m.micro_batch * m.seq / m.cp
    last = np.where(m.pp > 1, 0.0, 1.0)
    return np.asarray(10 * tokens * m.vocab / m.tp * last)


def fits(total_gib: Array, reported_gib: float, usable: float = 0.95) -> NDArray[np.bool_]:
    """Whether a plan fits: never when it needs over the usable share of what the card reports."""
    return np.asarray(total_gib <= reported_gib * usable)
