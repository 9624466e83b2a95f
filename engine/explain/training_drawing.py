"""A training plan as boxes: batch, copies of the model, stages, GPUs of a stage, machines, links.

Counts and rates are the plan's; `services_svg` draws it.
"""

from __future__ import annotations

from engine.estimate.training_job import PlanResult
from engine.explain.services_drawing import Arrow, Box, Drawing
from engine.wording import count, money, number
from engine.workload.services_terms import Shown

TITLE = "How the job lies on the machines"


def training_drawing(result: PlanResult, layers: int) -> Drawing:
    """The plan from the batch down to the cables.

    layers : of the model, which stages share
    """
    p, choice = result.plan, result.choice
    copies = p.dp
    each = p.tp * p.pp * p.cp
    batch = p.global_batch_seqs or copies * p.micro_batch
    boxes = [
        Box("batch", "A step's batch",
            (f"{batch:,} sequences of {p.seq_len:,} tokens",), "store"),
        Box("copy", f"{copies:,} copies of the model" if copies > 1 else "One copy of the model",
            _of_copy(result, each), "gpu", copies),
    ]  # fmt: skip
    arrows = [Arrow("batch", "copy", f"{_share(batch, copies)} to each")]
    if p.pp > 1:
        chunks = f", {p.vp} chunks each" if p.vp > 1 else ""
        boxes.append(
            Box("stage", f"{p.pp} stages in a row",
                (f"{_share(layers, p.pp)} layers each{chunks}",
                 f"micro-batches of {count(p.micro_batch, 'sequence')}"), "gpu", p.pp)
        )  # fmt: skip
        arrows.append(Arrow("copy", "stage", "by layers"))
    if p.tp * p.cp > 1:
        boxes.append(Box("group", count(p.tp * p.cp, "GPU") + " side by side", _of_group(result),
                         "gpu", p.tp * p.cp))  # fmt: skip
        arrows.append(Arrow(boxes[-2].id, "group", "by matrices" if p.cp == 1 else "by tokens"))
    machines = max(p.gpus // choice.node, 1)
    here = min(choice.node, p.gpus)
    boxes.append(
        Box("machine", count(machines, "machine"),
            (f"{here} × {choice.accelerator.name} in each", *_links(result, machines, here)),
            "gpu", machines)
    )  # fmt: skip
    arrows.append(Arrow(boxes[-2].id, "machine", "lies on"))
    boxes.append(Box("saves", "Shared folder", ("data in, checkpoints out",), "store"))
    arrows.append(Arrow("machine", "saves"))
    return Drawing(
        Shown.sharded, TITLE, _message(result), tuple((b,) for b in boxes), tuple(arrows)
    )


def _of_copy(result: PlanResult, each: int) -> tuple[str, ...]:
    p = result.plan
    shared = {0: "", 1: "optimizer", 2: "optimizer and gradients", 3: "all states (FSDP)"}
    lines = [f"{count(each, 'GPU')} a copy"]
    if shared[p.zero_stage] and p.shard_ranks > 1:
        lines.append(f"{shared[p.zero_stage]} shared by {p.shard_ranks:,}")
    if p.ep > 1:
        lines.append(f"experts spread over {p.ep:,} GPUs")
    return tuple(lines)


def _of_group(result: PlanResult) -> tuple[str, ...]:
    p = result.plan
    lines = [f"{name} {size}" for name, size in (("tensor", p.tp), ("context", p.cp)) if size > 1]
    need = result.memory
    return (", ".join(lines),
            f"{number(need.likely)} of {number(need.usable)} GiB on the fullest")  # fmt: skip


def _links(result: PlanResult, machines: int, here: int) -> list[str]:
    """What joins the GPUs of a machine, and the machines."""
    choice = result.choice
    acc, net = choice.accelerator, choice.network
    lines = []
    if here > 1:
        rate = acc.scaleup_gb_per_s_per_direction
        inside = f"{acc.scaleup_technology}, {rate:,.0f} GB/s" if rate else acc.host_link or "PCIe"
        lines.append(f"inside: {inside}")
    if machines > 1 and net is not None:
        lines.append(f"between: {net.name}")
    return lines


def _share(whole: int, parts: int) -> str:
    """What each part gets: one number where it divides."""
    least, most = whole // parts, -(-whole // parts)
    return f"{most:,}" if least == most else f"{least:,} or {most:,}"


def _message(result: PlanResult) -> str:
    p, usd = result.plan, result.choice.usd_per_gpu_hour
    sizes = f"{p.tp} tensor × {p.pp} pipeline × {p.cp} context × {p.dp:,} data"
    price = f"; {money(p.gpus * usd)} an hour" if usd is not None else ""
    return f"{count(p.gpus, 'GPU')} = {sizes}{price}."
