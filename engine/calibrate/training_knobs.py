"""The parameters that are fitted: prior, freedom, unit and meaning.

Priors are data-sheet or published figures where there are any, and physical guesses elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter: its prior, how far rows may move it (sd, of its log), and what it is."""

    prior: float
    freedom: float
    unit: str
    meaning: str
    linear: bool = False


KNOBS: dict[str, Knob] = {
    "eff_a100_16": Knob(0.72, 0.1, "share of peak", "large matrix products: a100, 16 bits"),
    "eff_h100_16": Knob(0.68, 0.1, "share of peak", "large matrix products: h100, 16 bits"),
    "eff_h100_8": Knob(0.58, 0.15, "share of peak", "large matrix products: h100, 8 bits"),
    "eff_b200_16": Knob(0.72, 0.15, "share of peak", "large matrix products: b200, 16 bits"),
    "eff_b200_8": Knob(0.6, 0.15, "share of peak", "large matrix products: b200, 8 bits"),
    "eff_b200_4": Knob(0.45, 0.25, "share of peak", "large matrix products: b200, 4 bits"),
    "eff_amd_8": Knob(0.4, 0.25, "share of peak", "large matrix products: amd, 8 bits"),
    "eff_other_16": Knob(0.6, 0.1, "share of peak", "large matrix products: other, 16 bits"),
    "eff_other_8": Knob(0.45, 0.12, "share of peak", "large matrix products: other, 8 bits"),
    "product_bytes": Knob(1.2, 0.3, "times", "traffic of matrix products against their operands"),
    "half_rows_expert": Knob(
        100, 0.7, "tokens", "rows an expert sees at which a product takes twice its ideal time"
    ),
    "half_rows": Knob(
        100, 0.7, "tokens", "rows at which a product takes twice its ideal time, 150 FLOP a byte"
    ),
    "half_side": Knob(
        100, 0.7, "elements", "side at which a product takes twice its ideal time, 150 FLOP a byte"
    ),
    "hunger": Knob(1, 0.4, "power", "growth of those sizes with peak over memory bandwidth", True),
    "norm_bytes": Knob(
        30, 0.4, "bytes/element", "norms, residuals, rotary: traffic by token and width, one pass"
    ),
    "activation_bytes": Knob(
        6, 0.4, "bytes/element", "activation functions: traffic by token and MLP width, one pass"
    ),
    "route_bytes": Knob(
        20,
        0.5,
        "bytes/element",
        "routing and permutation: traffic by routed token and width, one pass",
    ),
    "cast_bytes": Knob(
        12, 0.5, "bytes/element", "casts to 8 bits and fewer: traffic by token and width, one pass"
    ),
    "accumulate_bytes": Knob(8, 0.3, "bytes/parameter", "adding gradients of a micro-batch"),
    "core_plain": Knob(0.45, 0.3, "share of peak", "attention core before fused kernels"),
    "core_before": Knob(
        0.65, 0.25, "times", "fused attention of PyTorch before 2025 on newer chips"
    ),
    "core_a100": Knob(0.5, 0.2, "share of peak", "fused attention core: a100"),
    "core_h100": Knob(0.45, 0.2, "share of peak", "fused attention core: h100"),
    "core_b200": Knob(0.42, 0.2, "share of peak", "fused attention core: b200"),
    "core_b300": Knob(0.5, 0.2, "share of peak", "fused attention core: b300"),
    "core_amd": Knob(0.35, 0.3, "share of peak", "fused attention core: amd"),
    "core_other": Knob(0.45, 0.3, "share of peak", "fused attention core: other"),
    "score_bytes": Knob(12, 0.4, "bytes/score", "traffic of unfused attention, one pass"),
    "head_eff": Knob(0.6, 0.2, "share of peak", "language-model head"),
    "head_eff_whole_legacy": Knob(
        0.5, 0.3, "share of peak", "language-model head not split by tensor parallelism: legacy"
    ),
    "logit_bytes": Knob(24, 0.4, "bytes/logit", "traffic of logits and loss"),
    "head_share": Knob(0.8, 0.3, "share", "of the head that the last stage adds"),
    "launch_moe_ms": Knob(0.4, 0.7, "ms/layer", "launches that experts add, forward"),
    "launch_ms_tuned": Knob(0.25, 0.5, "ms/layer", "launch floor, forward: tuned"),
    "launch_ms_native": Knob(0.5, 0.5, "ms/layer", "launch floor, forward: native"),
    "launch_ms_legacy": Knob(0.8, 0.3, "ms/layer", "launch floor, forward: legacy"),
    "launch_ms_jax": Knob(0.2, 0.5, "ms/layer", "launch floor, forward: jax"),
    "launch_ms_plain": Knob(0.35, 0.5, "ms/layer", "launch floor, forward: plain"),
    "fast_share": Knob(0.75, 0.15, "share", "of the nominal rate of the fast domain"),
    # Held near what is measured: no network gives more than its nominal rate.
    "nic_share": Knob(0.75, 0.1, "share", "of the nominal rate of the network"),
    "tp_exposed_tuned": Knob(0.5, 0.4, "share", "of tensor-parallel traffic not hidden: tuned"),
    "tp_exposed_plain": Knob(0.9, 0.3, "share", "of tensor-parallel traffic not hidden: plain"),
    "tp_exposed_native": Knob(0.9, 0.3, "share", "of tensor-parallel traffic not hidden: native"),
    "tp_exposed_legacy": Knob(1, 0.25, "share", "of tensor-parallel traffic not hidden: legacy"),
    "tp_exposed_jax": Knob(0.7, 0.3, "share", "of tensor-parallel traffic not hidden: jax"),
    "tp_latency_us": Knob(20, 0.5, "us", "of an all-reduce on the GPUs, however small"),
    "tp_launch_us": Knob(13, 0.5, "us", "of launching an all-reduce, by doubling of ranks"),
    "cp_exposed": Knob(0.3, 0.7, "share", "of context-parallel traffic not hidden"),
    "ep_exposed": Knob(0.6, 0.5, "share", "of expert traffic not hidden"),
    "pp_exposed": Knob(0.3, 0.7, "share", "of pipeline transfers not hidden"),
    "overlap_norm": Knob(3, 0.4, "power", "of the norm that joins computing and gathers"),
    "reduce_bytes": Knob(3, 0.3, "bytes/parameter", "of a reduction of sharded gradients"),
    "grad_window": Knob(0.6, 0.5, "share", "of a micro-batch behind which gradients travel"),
    "grad_bytes_plain": Knob(
        5, 0.3, "bytes/parameter", "gradients reduced and weights gathered once a step: plain"
    ),
    "grad_bytes_tuned": Knob(
        5, 0.3, "bytes/parameter", "gradients reduced and weights gathered once a step: tuned"
    ),
    "grad_bytes_native": Knob(
        5, 0.3, "bytes/parameter", "gradients reduced and weights gathered once a step: native"
    ),
    "grad_bytes_legacy": Knob(
        5, 0.3, "bytes/parameter", "gradients reduced and weights gathered once a step: legacy"
    ),
    "grad_bytes_jax": Knob(
        5, 0.3, "bytes/parameter", "gradients reduced and weights gathered once a step: jax"
    ),
    "optimizer_bytes": Knob(32, 0.3, "bytes/parameter", "of the update"),
    "iteration_ms": Knob(7, 0.5, "ms", "launch and logging of an iteration"),
    "iteration_ms_legacy": Knob(7, 0.5, "ms", "launch and logging of an iteration: legacy"),
    "straggler": Knob(0.008, 0.7, "share", "spread of nodes: standard deviation"),
    "lora_extra": Knob(0.15, 0.5, "passes", "adapters and what backward needs beside them"),
    # LitGPT's own table, Llama 2 7B and 13B on an A100: 4 bits add 79 and 191 ms an iteration.
    "unpack_bytes": Knob(
        10.5, 0.2, "bytes/parameter", "turning 4-bit weights into 16 bits, one pass over them"
    ),
    "owner_us": Knob(
        50, 0.4, "us", "handing out a layer's weights, by rank that owns some (plain stack)"
    ),
    "native_fp8": Knob(1.2, 0.12, "times", "8 bits outside vendors' recipes"),
    "legacy_gather": Knob(5, 0.5, "times", "gathers of the first ZeRO-3"),
    "ultra": Knob(1.1, 0.1, "times", "Blackwell Ultra against Blackwell"),
    "ring_us": Knob(4, 0.7, "us", "ring latency by node and layer"),
    "level_moe": Knob(1.1, 0.2, "times", "time of mixture of experts beside what is counted"),
    "level_plain": Knob(1.05, 0.1, "times", "time of the stack against vendors' recipes: plain"),
    "level_native": Knob(1.05, 0.1, "times", "time of the stack against vendors' recipes: native"),
    "level_legacy": Knob(1.1, 0.15, "times", "time of the stack against vendors' recipes: legacy"),
    "level_jax": Knob(1, 0.15, "times", "time of the stack against vendors' recipes: jax"),
    "young": Knob(0.05, 0.05, "log/year", "time lost in the first 18 months of a generation", True),
    "age_moe": Knob(
        0.15, 0.08, "log/year", "time lost to older dispatch to 8 experts: vendors' recipes", True
    ),
    "age_plain": Knob(0.03, 0.03, "log/year", "time lost to older software: plain", True),
    "age_tuned": Knob(0.03, 0.03, "log/year", "time lost to older software: tuned", True),
    "age_native": Knob(0.03, 0.03, "log/year", "time lost to older software: native", True),
    "age_legacy": Knob(0, 0.01, "log/year", "time lost to older software: legacy", True),
    "age_jax": Knob(0.03, 0.03, "log/year", "time lost to older software: jax", True),
}
