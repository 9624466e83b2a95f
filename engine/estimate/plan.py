"""How a training job is split over GPUs: one frozen plan, no formulas and no hardware.

Memory and step time read it; the search over plans makes it. Names follow Megatron-LM: tensor
(tp), pipeline (pp), virtual pipeline (vp), context (cp), expert (ep) and data (dp) parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import InputError

Precision = Literal["bf16", "fp16", "fp8", "fp32", "fp4"]
Recompute = Literal["none", "selective", "full"]
Task = Literal["pretrain", "finetune", "lora", "qlora"]
Optimizer = Literal["adam", "adam8bit", "sgd", "muon"]
Stack = Literal["megatron", "fsdp", "deepspeed", "other"]


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """One way to split one training step.

    gpus : all of the job
    tp, pp, vp, cp, ep : sizes of the parallel groups; vp is model chunks a pipeline rank holds
    zero_stage : 0 nothing sharded, 1 optimizer, 2 and gradients, 3 and weights (FSDP)
    shard_size : ranks that share one copy of the sharded states; None is all of dp x cp,
        a node's GPUs is hybrid sharding (HSDP)
    sequence_parallel : norms and residuals split over the tensor ranks too
    micro_batch : sequences a rank computes at a time
    global_batch_seqs : sequences of one optimizer step over all ranks; 0 is one micro-batch a rank
    seq_len : tokens of a sequence
    recompute : activations computed again in the backward pass; selective is attention alone
    lora_rank : rank of the adapters; read for the tasks lora and qlora
    cpu_offload : optimizer states live in the host's memory
    master_weights : a copy of the weights in 32 bits beside those computed with; without it all
        states have the precision's own width
    stack : whose training code; decides the bytes of gradients and buffers
    stack_year : release of that code, as a decimal year

    Raises
    ------
    InputError : for sizes that are not positive, or that do not divide each other
    """

    gpus: int
    tp: int = 1
    pp: int = 1
    vp: int = 1
    cp: int = 1
    ep: int = 1
    zero_stage: int = 0
    shard_size: int | None = None
    sequence_parallel: bool = True
    micro_batch: int = 1
    global_batch_seqs: int = 0
    seq_len: int = 4096
    precision: Precision = "bf16"
    recompute: Recompute = "none"
    task: Task = "pretrain"
    lora_rank: int = 16
    flash_attention: bool = True
    optimizer: Optimizer = "adam"
    cpu_offload: bool = False
    master_weights: bool = True
    stack: Stack = "megatron"
    stack_year: float = 2026.0

    def __post_init__(self) -> None:
        for name in ("gpus", "tp", "pp", "vp", "cp", "ep", "micro_batch", "seq_len", "lora_rank"):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)} can't be used", where=name, right="1 up")
        if self.global_batch_seqs < 0:
            raise InputError("is negative", where="global_batch_seqs", right="0 or more")
        if self.gpus % self.model_parallel:
            raise InputError(
                f"{self.gpus} GPUs can't be split by tp x pp x cp = {self.model_parallel}",
                where="gpus", right="a multiple of it",
            )  # fmt: skip
        if (self.gpus // self.pp) % self.ep:
            raise InputError(f"{self.ep} does not divide the {self.gpus // self.pp} ranks of a "
                             "stage", where="ep", right="a divisor")  # fmt: skip
        if self.zero_stage not in (0, 1, 2, 3):
            raise InputError(f"no ZeRO stage {self.zero_stage}", where="zero_stage", right="0 to 3")
        if self.shard_size is not None and (
            self.shard_size < 1 or (self.dp * self.cp) % self.shard_size
        ):
            raise InputError(
                f"{self.shard_size} does not divide the {self.dp * self.cp} data-parallel ranks",
                where="shard_size", right="a divisor",
            )  # fmt: skip

    @property
    def model_parallel(self) -> int:
        """Ranks that hold one copy of the model among them, times context ranks."""
        return self.tp * self.pp * self.cp

    @property
    def dp(self) -> int:
        """Data-parallel ranks: what the other sizes leave of the GPUs."""
        return self.gpus // self.model_parallel

    @property
    def shard_ranks(self) -> int:
        """Ranks that share one copy of the sharded states; context ranks hold the same weights."""
        return self.shard_size or self.dp * self.cp

    @property
    def expert_shard_ranks(self) -> int:
        """Ranks with the same routed experts: all of a stage's over ep."""
        return max(self.gpus // (self.pp * self.ep), 1)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step on each rank, at least one."""
        if not self.global_batch_seqs:
            return 1
        return max(-(-self.global_batch_seqs // (self.dp * self.micro_batch)), 1)
