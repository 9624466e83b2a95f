"""Bytes of one GPU during training, term by term, for many plans at once [GiB].

Numbers in, numbers out: knows no model files, no plans, no prices, no speed. What can be counted
is counted; the rest are the parameters of `data/calibration_memory.csv`.

Three moments of a step can be the fullest, and the largest is told:
the loss (all kept activations and the logits), the backward pass of the last layer (what it
computes again, temporary gradients), and the end (all gradients; activations are gone).

References
----------
[1] Rajbhandari et al. 2020, arXiv 1910.02054: 16 bytes a parameter, sharded by ZeRO stage.
[2] Korthikanti et al. 2022, arXiv 2205.05198: activations by tensor, sequence parallelism and
    recomputation; the first pipeline stage holds p micro-batches of L/p layers.
[3] Megatron-LM README: distributed optimizer, 6 + 12/d bytes a parameter with fp32 gradients.
[4] Narayanan et al. 2021, arXiv 2104.04473: interleaving holds 1 + (p - 1)/(p·v) as much.
[5] DeepSeek-AI 2024, arXiv 2412.19437, table 2: DualPipe holds two copies and p + 1 micro-batches.
[6] DeepSpeed configuration: gradients are reduced in a contiguous bucket of 5e8 elements; with
    ZeRO-3 at most 1e9 parameters are gathered at a time (`stage3_max_live_parameters`).
[7] PyTorch's pipelines over FSDP2 (torchtitan, parallelize.py; torch.distributed.pipelining): a
    stage keeps its weights gathered, and its gradients whole in 32 bits, through a step.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Number = Array | float
GIB = 2.0**30
CALIBRATION = Path(__file__).resolve().parents[2] / "data" / "calibration_memory.csv"
MASTER_BYTES = 4.0  # the 32-bit copy of the weights that the optimizer updates [1]
ADAPTER_BYTES = 16.0  # of a parameter of an adapter: trained like any other [1]
LIVE_PARAMETERS = 1e9  # gathered by DeepSpeed at a time [6]
DEEPSPEED_BUCKET = 5e8  # elements that are reduced at a time [6]
FIRST, MIDDLE, LAST = "first", "middle", "last"  # stages of a pipeline; one alone is the last
LOSS, BACKWARD, END = "loss", "backward", "end"
ONE_F_ONE_B, GPIPE, DUALPIPE = 0.0, 1.0, 2.0  # order of a pipeline's work


@dataclass(frozen=True, slots=True)
class Calibration:
    """Parameters of the memory model; each has a row in `data/calibration_memory.csv`."""

    context_gib: float
    fragmentation: float
    fragmentation_native: float
    logit_bytes_megatron: float
    logit_bytes_eager: float
    logit_bytes_compiled: float
    logit_bytes_parallel: float
    logit_bytes_fused: float
    logit_bytes_chunked: float
    logit_bytes_shifted: float
    transient_share: float
    matrix_work_bytes: float
    head_work_bytes: float
    quantized_bytes: float
    quantized_input_bytes: float
    fp8_copy_bytes: float
    interval_low: float
    interval_high: float
    interval_low_native: float
    interval_high_native: float


@lru_cache(maxsize=1)
def calibration() -> Calibration:
    """The shipped parameters."""
    with CALIBRATION.open(encoding="utf-8", newline="") as file:
        rows = {row["name"]: float(row["value"]) for row in csv.DictReader(file)}
    return Calibration(**{f.name: rows[f.name] for f in fields(Calibration)})


@dataclass(slots=True)
class MemoryInputs:
    """One row a plan; counts of parameters and elements, arrays of one length or numbers.

    expert_params : parameters of routed experts among `params`, split over `ep` ranks
    mlp_width : elements a token leaves in the MLP, twice or (gated) three times its width, and
        as many for each expert that it passes
    zero : ZeRO stage 0 to 3 (3 is FSDP's full shard); d : ranks that shard the states
    recompute : 0 none, 1 selective (attention core, or op by op outside Megatron), 2 full
    weight_bytes : bytes of a frozen weight for LoRA (2, or about 0.5 for 4 bits with scales)
    adapter_share : parameters of the adapters over all parameters
    megatron : 1 for Megatron-type code: gradients stay, in 32 bits; fused kernels and loss
    sequence_parallel : None where it is not stated
    expert_d : ranks that share a GPU's experts; None follows from the rest
    routed_width : elements of the copies that are sent to experts and back, a token
    matrix : parameters of the largest matrix of a layer, on all tensor ranks (0: not known)
    dense_layers : leading layers without experts
    matrices : of an MLP, 3 for a gated one
    trained_bytes, master_bytes, moment_bytes : bytes of weight, its 32-bit copy, optimizer moments
    offload : what lives in the host's memory: 0 nothing, 1 optimizer, 2 weights and gradients too
    eager : 1 where kernels are not fused (PyTorch without compilation); None: all but Megatron
    logit_bytes : bytes of a logit at the loss; None follows from the code
    kept_share : of a layer's activations that are kept where modules of it are computed again
    lean : 1 where norms and activation functions are computed again, their inputs kept
    kept_on_host : 1 where kept activations are moved to the host
    gradients_stay : whether gradients live through the next micro-batch; None follows
    in_backward : 1 where each weight is updated as soon as its gradient is there
    eight_bits : 1 where products are computed in 8 bits (or 4)
    schedule : order of the pipeline's work: 0 1F1B (interleaved where vp > 1), 1 GPipe, 2 DualPipe
    bucket_elements : of communication buckets beside the gradients
    adapter_bytes : of a parameter of an adapter, with its gradient and moments
    whole_bytes : of a frozen weight that every GPU keeps where weights are shared (its scales)
    stream : width of activations over 16 bits; 2 where a frozen model passes 32 on
    """

    params: Number
    expert_params: Number
    layers: Number
    hidden: Number
    heads: Number
    q_width: Number
    kv_width: Number
    mlp_width: Number
    vocab: Number
    seq: Number
    micro_batch: Number
    tp: Number
    pp: Number
    cp: Number
    ep: Number
    d: Number
    zero: Number
    micro_batches: Number
    recompute: Number
    lora: Number
    adapter_share: Number
    weight_bytes: Number
    flash: Number
    megatron: Number
    vp: Number = 1.0
    tied: Number = 0.0
    sequence_parallel: Number | None = None
    expert_d: Number | None = None
    routed_width: Number = 0.0
    matrix: Number = 0.0
    dense_layers: Number = 0.0
    matrices: Number = 3.0
    trained_bytes: Number = 2.0
    master_bytes: Number = MASTER_BYTES
    moment_bytes: Number = 8.0
    gradient_bytes: Number | None = None
    offload: Number = 0.0
    eager: Number | None = None
    logit_bytes: Number | None = None
    kept_share: Number = 1.0
    lean: Number = 0.0
    kept_on_host: Number = 0.0
    gradients_stay: Number | None = None
    in_backward: Number = 0.0
    eight_bits: Number = 0.0
    schedule: Number = ONE_F_ONE_B
    bucket_elements: Number = 0.0
    adapter_bytes: Number = ADAPTER_BYTES
    whole_bytes: Number = 0.0
    stream: Number = 1.0


@dataclass(slots=True)
class MemoryBreakdown:
    """GiB of one GPU by item; `total` is what the driver would report at the peak.

    weights : as computed with; sharded where the plan shards them
    gradients : of the weights, with temporary ones before they are added up
    optimizer : moments and the 32-bit copy of the weights
    activations : kept for the backward pass, and the working space of a layer
    logits : of the last layer, with what the loss keeps
    buffers : weights gathered from other GPUs, and what is on its way between GPUs
    fragmentation : what the allocator loses between tensors of changing sizes
    context : of the driver and the communication libraries
    """

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    buffers: Array
    fragmentation: Array
    context: Array

    @property
    def overhead(self) -> Array:
        """Fragmentation and context: all that is no tensor."""
        return np.asarray(self.fragmentation + self.context)

    @property
    def allocated(self) -> Array:
        """Tensors alone, as a framework's own peak counter reports."""
        return np.asarray(
            self.weights + self.gradients + self.optimizer + self.activations + self.logits
            + self.buffers
        )  # fmt: skip

    @property
    def reserved(self) -> Array:
        """Tensors and what is lost between them, as an allocator reports."""
        return np.asarray(self.allocated + self.fragmentation)

    @property
    def total(self) -> Array:
        """All items together, as the driver reports."""
        return np.asarray(self.reserved + self.context)


def training_memory(m: MemoryInputs) -> MemoryBreakdown:
    """Peak memory of the fullest GPU [GiB]: of the first or the last pipeline stage.

    Arrays broadcast; each item comes back with their common shape.
    """
    moments = [one for place in _places(m) for one in _stage(m, place)]
    fullest, most = moments[0], sum(moments[0], np.zeros(()))
    for one in moments[1:]:
        total = sum(one, np.zeros(()))
        more = total > most
        if not np.any(more):
            continue
        fullest = tuple(
            x if x is y else np.where(more, x, y) for x, y in zip(one, fullest, strict=True)
        )
        most = np.maximum(total, most)
    shape = np.broadcast_shapes(*(np.shape(x) for x in fullest))
    return MemoryBreakdown(*(np.broadcast_to(x, shape) / GIB for x in fullest))


def _places(m: MemoryInputs) -> tuple[str, ...]:
    """Stages that can be the fullest: the first, the last, a deeper one between them.

    A stage that is left out is never the fullest of any row: without a pipeline all are the same,
    and a deeper one holds more than the first only where that has fewer layers or fewer experts.
    """
    if not np.any(np.asarray(m.pp) > 1):
        return (LAST,)
    deeper = np.any(_ends_are_lighter(m) | _first_has_fewer_experts(m))
    return (FIRST, MIDDLE, LAST) if deeper else (FIRST, LAST)


def _stage(m: MemoryInputs, place: str) -> list[tuple[Array, ...]]:
    """Bytes by item of one stage, at each moment of a step."""
    c = calibration()
    native = np.asarray(m.megatron) <= 0
    weights, gradients, optimizer = _states(m, place)
    context, way = np.asarray(c.context_gib * GIB), _on_the_way(m)
    lost = np.where(native, c.fragmentation_native, c.fragmentation)
    stays = np.where(_stay(m), gradients, 0.0)
    added = stays + _temporary_gradients(m, place)
    in_backward = (np.asarray(m.in_backward) > 0) & ~_stay(m)
    at_end = np.where(in_backward, 0.0, gradients)
    held, alive, kept = _activations(m, place)
    logits = _logits(m, place)
    nothing = np.zeros(())
    moments: list[tuple[Array, ...]] = []
    for when in (LOSS, BACKWARD, END):
        # Megatron's loss and its layers' work come close enough to be added [calibration].
        if when == END:
            now, of_loss, sums = kept, nothing, at_end
        else:
            now = held + (alive if when == BACKWARD else np.where(native, 0.0, alive))
            of_loss = logits if when == LOSS else np.where(native, 0.0, logits)
            sums = added
        gathered = _gathered(m, place, when)
        dynamic = (now + of_loss + gathered) * lost
        moments.append((weights, sums, optimizer, now, of_loss, gathered + way, dynamic, context))
    return moments


# --- states


def _states(m: MemoryInputs, place: str) -> tuple[Array, Array, Array]:
    """Bytes of weights, gradients and optimizer states [1, 3]."""
    held, experts = _parameters(m, place)
    expert_d = np.maximum(m.d * m.tp / m.ep, 1.0) if m.expert_d is None else m.expert_d
    lora, full = np.asarray(m.lora) > 0, np.asarray(m.zero) >= 3
    everything, sharded = held + experts, held / m.d + experts / expert_d

    def spread(applies: NDArray[np.bool_]) -> Array:
        # Parameters that a rank keeps of a state, sharded where it applies.
        return np.asarray(np.where(applies, sharded, everything))

    trained = m.adapter_share * spread(full) * np.asarray(m.adapter_bytes)
    # FSDP keeps its only copy in 32 bits; the others beside the copy that is computed with.
    own = m.trained_bytes + np.where(full, np.minimum(m.master_bytes, 2.0), 0.0)
    copies = (np.asarray(m.eight_bits) > 0) & (np.asarray(m.megatron) > 0) & ~full
    own = own + np.where(copies, calibration().fp8_copy_bytes, 0.0)
    weights = np.where(lora, m.weight_bytes, own) * spread(full)
    usual = np.where((np.asarray(m.megatron) > 0) | full, 4.0, 2.0)
    each = usual if m.gradient_bytes is None else m.gradient_bytes
    shared = (np.asarray(m.zero) >= 2) & ~_piped(m)
    gradients = np.where(lora, trained / 4, each * spread(shared))
    states = m.moment_bytes + np.where(full, np.maximum(m.master_bytes - 4.0, 0), m.master_bytes)
    optimizer = np.where(lora, trained * 3 / 4, states * spread(np.asarray(m.zero) >= 1))
    here = np.where(np.asarray(m.offload) >= 2, 0.0, 1.0)
    kept = weights * here + np.where(lora, m.whole_bytes, 0.0) * everything
    return kept, gradients * here, optimizer * np.where(np.asarray(m.offload) > 0, 0, 1)


def _piped(m: MemoryInputs) -> NDArray[np.bool_]:
    """Whether weights are shared by FSDP below pipeline stages [7]."""
    return (np.asarray(m.zero) >= 3) & (np.asarray(m.pp) > 1)


def _tables(m: MemoryInputs, place: str) -> tuple[Array, Array]:
    """Parameters of embedding and head on a stage, on all tensor ranks."""
    table = np.minimum(m.vocab * m.hidden, m.params - m.expert_params)
    one = np.asarray(m.pp) <= 1
    head = np.where(one, table, table if place == LAST else 0.0)
    # A shared table is both embedding and head; on a stage of its own it is there once more.
    alone = np.where(np.asarray(m.tied) > 0, 0.0, table)
    embedding = np.where(one, alone, table if place == FIRST else 0.0)
    return np.asarray(embedding), np.asarray(head)


def _ends_are_lighter(m: MemoryInputs) -> NDArray[np.bool_]:
    """Whether the first and the last stage have a layer less, as where the layers don't divide.

    126 layers on 16 stages are 8 in each but the ends, which have 7 and a table each.
    """
    spare = np.ceil(m.layers / m.pp) * m.pp - m.layers
    return np.asarray((np.asarray(m.pp) > 2) & (spare >= 2))


def _first_has_fewer_experts(m: MemoryInputs) -> NDArray[np.bool_]:
    """Whether leading layers without experts are on the first stage, and others lie between."""
    early = (np.asarray(m.dense_layers) > 0) & (np.asarray(m.expert_params) > 0)
    return np.asarray(early & (np.asarray(m.pp) > 2))


def _layers_held(m: MemoryInputs, place: str) -> Array:
    """Layers of a stage."""
    fewer = np.where(_ends_are_lighter(m), 1.0, 0.0) if place != MIDDLE else 0.0
    return np.asarray(np.maximum(np.ceil(m.layers / m.pp) - fewer, 1.0))


def _parameters(m: MemoryInputs, place: str) -> tuple[Array, Array]:
    """Parameters of a stage on one tensor rank: shared by all tokens, and of experts."""
    table = m.vocab * m.hidden
    shared = m.params - m.expert_params
    tables = np.where(np.asarray(m.tied) > 0, table, 2 * table)
    layers = _layers_held(m, place)
    inner = np.maximum(shared - tables, 0.0) * layers / m.layers
    embedding, head = _tables(m, place)
    stage = np.minimum(inner + embedding + head, shared)
    sparse = np.maximum(m.layers - m.dense_layers, 1.0)
    # Leading layers have no experts, so a later stage holds more of them.
    early = np.where(np.asarray(m.pp) > 1, m.dense_layers, 0.0) if place == FIRST else 0.0
    deepest = np.minimum(np.maximum(layers - early, 0.0), sparse) / sparse
    copies = np.where(np.asarray(m.schedule) == DUALPIPE, 2.0, 1.0)  # [5]
    return np.asarray(stage / m.tp * copies), np.asarray(m.expert_params * deepest / m.ep * copies)


def _stay(m: MemoryInputs) -> NDArray[np.bool_]:
    """Whether gradients live through the next micro-batch: added up, or in lasting buckets."""
    if m.gradients_stay is not None:
        return np.asarray(m.gradients_stay) > 0
    buckets = (np.asarray(m.zero) < 3) & (np.asarray(m.d) > 1)
    return (np.asarray(m.megatron) > 0) | (np.asarray(m.micro_batches) > 1) | buckets


def _temporary_gradients(m: MemoryInputs, place: str) -> Array:
    """Bytes of gradients of the matrices being worked on, before they are added up."""
    c = calibration()
    _, head = _tables(m, place)
    megatron = c.matrix_work_bytes * m.matrix / m.tp + c.head_work_bytes * head / m.tp
    native = np.where(_stay(m), 0.0, 2.0 * head / m.tp)
    work = np.where(np.asarray(m.megatron) > 0, megatron, native)
    return np.asarray(np.where(np.asarray(m.lora) > 0, 0.0, work))


# --- activations and logits


def _tokens(m: MemoryInputs) -> Array:
    return np.asarray(m.micro_batch * m.seq / m.cp)


def _eager(m: MemoryInputs) -> NDArray[np.bool_]:
    return np.asarray(m.megatron) <= 0 if m.eager is None else np.asarray(m.eager) > 0


def _split(m: MemoryInputs) -> Array:
    """Ranks that share what lies outside attention and MLP."""
    if m.sequence_parallel is None:
        return np.asarray(m.tp, dtype=float)
    return np.asarray(np.where(np.asarray(m.sequence_parallel) > 0, m.tp, 1.0))


def _layer(m: MemoryInputs) -> Array:
    """Bytes of one layer's activations for one micro-batch [2].

    Fused: inputs of two norms, of attention and of the MLP 8h; queries and the core's output 4q;
    keys and values 4k; the MLP before and after its activation 2·width; without fused attention
    the scores 5·a·s. Unfused gated models keep norms in 32 bits, keys and values for every head,
    and the gate on both sides of its activation.
    """
    gated = np.asarray(m.matrices) >= 3
    loose = _eager(m) & gated
    keys = np.where(loose, np.maximum(m.q_width, m.kv_width), m.kv_width)
    lean = np.asarray(m.lean) > 0
    after = np.where(lean, (m.matrices - 1.0) / m.matrices, 1.0)
    mlp = m.mlp_width * np.where(loose, 8 / 3, 2.0) * after
    scores = np.where(np.asarray(m.flash) > 0, 4 * m.heads, 5 * m.heads * m.seq)
    core = np.where(np.asarray(m.recompute) >= 1, 0.0, scores)
    norms = np.where(loose, 16.0, np.where(lean, 4.0, 8.0))
    packed = (np.asarray(m.lora) > 0) & (np.asarray(m.weight_bytes) < 1)
    norms = norms + np.where(packed, calibration().quantized_input_bytes, 0.0)
    outside = norms * m.hidden + 2 * m.routed_width
    inside = (4 * m.q_width + 4 * keys + mlp + core) / m.tp
    return np.asarray(_tokens(m) * m.stream * (inside + outside / _split(m)))


def _kept(m: MemoryInputs) -> Array:
    """Bytes of one layer kept for the backward pass, one micro-batch."""
    # Where it is not stated whether the kept inputs are split, the mean of both.
    split = np.sqrt(m.tp) if m.sequence_parallel is None else _split(m)
    again = np.asarray(m.recompute)
    inputs = 2 * _tokens(m) * m.stream * m.hidden / split
    # Op by op outside Megatron: every other product and the attention's output.
    every_other = 2 * m.q_width + m.kv_width + m.mlp_width / m.matrices
    products = 2 * _tokens(m) * (every_other / m.tp + m.hidden / _split(m)) + inputs
    native = (again == 1) & (np.asarray(m.megatron) <= 0)
    usual = np.where(native, products, _layer(m) * m.kept_share)
    return np.asarray(np.where(again >= 2, inputs, usual))


def _in_flight(m: MemoryInputs, place: str) -> Array:
    """Micro-batches whose activations a stage holds, in whole stages [2, 4, 5]."""
    chunks = (m.pp - 1) / m.vp
    usual = {FIRST: m.pp, MIDDLE: m.pp - 1.0, LAST: 1.0}[place]
    folded = {FIRST: m.pp + chunks, MIDDLE: m.pp - 1 + chunks, LAST: m.pp - chunks}[place]
    many = np.where(np.asarray(m.vp) > 1, folded, usual)
    many = np.where(np.asarray(m.schedule) == DUALPIPE, m.pp + 1.0, many)
    many = np.where(np.asarray(m.schedule) == GPIPE, m.micro_batches, many)
    return np.asarray(np.where(np.asarray(m.pp) > 1, np.minimum(many, m.micro_batches), 1.0))


def _activations(m: MemoryInputs, place: str) -> tuple[Array, Array, Array]:
    """Bytes of kept activations, of the working space of a layer, and of one layer's kept ones."""
    layer, one = _layer(m), _kept(m)
    kept = one * np.where(np.asarray(m.kept_on_host) > 0, 0.0, 1.0)
    megatron, again = np.asarray(m.megatron) > 0, np.asarray(m.recompute)
    # Gradients of the MLP's and the residual's activations while a layer is worked on.
    passing = _tokens(m) * m.stream * (2 * m.mlp_width / m.tp + 8 * m.hidden / _split(m))
    passing = passing * np.where(megatron, calibration().transient_share, 1.0)
    whole = (again >= 2) | ((again == 1) & ~megatron) | (np.asarray(m.kept_on_host) > 0)
    whole = whole | (np.asarray(m.kept_share) < 1)
    alive = np.where(whole, layer, 0.0) + passing
    held = kept * _layers_held(m, place) * _in_flight(m, place)
    return np.asarray(held), alive, np.asarray(kept)


def _logits(m: MemoryInputs, place: str) -> Array:
    """Bytes of the logits and what their loss keeps, on the stage that has them."""
    c = calibration()
    native = np.where(_eager(m), c.logit_bytes_eager, c.logit_bytes_compiled)
    native = np.where(np.asarray(m.tp) > 1, c.logit_bytes_parallel, native)
    usual = np.where(np.asarray(m.megatron) > 0, c.logit_bytes_megatron, native)
    each = usual if m.logit_bytes is None else m.logit_bytes
    here = 1.0 if place == LAST else np.where(np.asarray(m.pp) > 1, 0.0, 1.0)
    return np.asarray(each * _tokens(m) * m.vocab / m.tp * here)


# --- communication


def _gathered(m: MemoryInputs, place: str, when: str) -> Array:
    """Bytes of weights gathered from the ranks that share them (FSDP), and their gradients."""
    full, lora = np.asarray(m.zero) >= 3, np.asarray(m.lora) > 0
    embedding, head = _tables(m, place)
    tables = embedding + head
    inner = np.maximum(m.params - m.expert_params - tables, 0.0) / m.layers / m.tp
    layer = inner + m.expert_params / m.layers / m.ep
    each = np.where(lora, m.weight_bytes, 2.0)
    # Two layers while the next is fetched; in the backward pass one with its gradients.
    # DeepSpeed gathers matrices, up to so many parameters at a time.
    most = np.maximum(LIVE_PARAMETERS, m.matrix / m.tp)
    one_by_one = np.asarray(m.bucket_elements) > 0
    layers = each * np.where(one_by_one, np.minimum(2 * layer, most), 2 * layer)
    stage = 2.0 * sum(_parameters(m, place), np.zeros(()))
    if when == LOSS:
        gathered = np.where(_piped(m), stage, layers + 2.0 * tables / m.tp)
        return np.asarray(np.where(full, gathered, 0.0))
    reduced = 4.0 if m.gradient_bytes is None else np.asarray(m.gradient_bytes)
    fresh = np.where(one_by_one, 2.0 * m.matrix / m.tp, (2.0 + reduced) * layer)
    size = np.where(_piped(m), stage, layers) + np.where(lora, 0.0, fresh)
    # Weights of 4 bits are unpacked a matrix at a time; gate and up projection are two.
    one = m.matrix / np.maximum(np.asarray(m.matrices) - 1.0, 1.0)
    unpacked = np.where(lora & (np.asarray(m.weight_bytes) < 1), 2.0 * one / m.tp, 0.0)
    return np.asarray(np.where(full, size, 0.0) + unpacked)


def _on_the_way(m: MemoryInputs) -> Array:
    """Bytes between GPUs: pipeline and tensor traffic, tokens to experts, DeepSpeed's buckets."""
    piece = 2 * _tokens(m) * m.hidden
    pipeline = np.where(np.asarray(m.pp) > 1, 2 * piece / _split(m), 0.0)
    tensor = np.where(np.asarray(m.tp) > 1, piece, 0.0)
    experts = np.where(np.asarray(m.ep) > 1, _tokens(m) * m.routed_width / m.tp, 0.0)
    held, inside = _parameters(m, FIRST)
    buckets = 2 * np.minimum(m.bucket_elements, held + inside)
    return np.asarray(pipeline + tensor + experts + buckets)


def fits(total_gib: Array | float, reported_gib: float, usable: float = 0.95) -> NDArray[np.bool_]:
    """Whether a plan fits: never when it needs over the usable share of what the card reports.

    Beyond, an allocation fails sooner or later.
    """
    return np.asarray(np.asarray(total_gib) <= reported_gib * usable)
