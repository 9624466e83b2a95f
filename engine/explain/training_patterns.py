"""The four patterns of a distributed system in a training plan: which it uses, what each sends.

The article's mapping (article 001, its four patterns in a GPU cluster): a coordinator is a server
with clients, an all-reduce is peers among themselves, a split model is sharding, and copies of it
are replication. Sizes and shares of the step are the plan's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.estimate.search_results import PARTS
from engine.estimate.training_job import PlanResult
from engine.wording import number, percent

TITLE = "Which patterns of a distributed system it uses"
NOTE = (
    "Bytes are those that one GPU sends; it receives as many. “Of the step” is what computing does "
    "not hide."
)
GB = 1e9
NOTHING_SENT = "nothing of a step"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern of the plan.

    here : what it is in this plan; sends : what one GPU sends in a step; link : over what
    waits : share of the step that waits for it, 0 to 1; None where it is no part of a step
    """

    name: str
    here: str
    sends: str
    link: str
    waits: float | None


def patterns(result: PlanResult) -> tuple[Pattern, ...]:
    """The patterns that the plan uses; none on a single GPU."""
    p = result.plan
    if p.gpus == 1:
        return ()
    found = [
        Pattern(
            "Client and server",
            f"one machine brings the {p.gpus:,} processes together and gives each its rank",
            NOTHING_SENT, "Ethernet of the machines", None,
        ),
        _copies(result),
    ]  # fmt: skip
    shards = (
        ("tensor", "tensor_parallel", p.tp, p.tp,
         f"each matrix lies on {p.tp} GPUs, which add up their parts"),
        ("pipeline", "pipeline_transfer", p.pp, p.tp * p.cp * p.pp,
         f"the layers lie on {p.pp} stages, which pass activations on"),
        ("context", "context_parallel", p.cp, p.tp * p.cp,
         f"each sequence lies on {p.cp} GPUs, which pass keys and values round"),
        ("expert", "expert_parallel", p.ep, p.ep,
         f"the experts lie on {p.ep:,} GPUs, to which tokens are sent"),
    )  # fmt: skip
    for split, part, ways, span, here in shards:
        if ways > 1:
            found.append(
                Pattern("Sharded", here, _gigabytes(result, split), _link(result, span),
                        _share(result, part))
            )  # fmt: skip
    total = sum(result.sent.values())
    found.append(
        Pattern(
            "Peer to peer", "all of this goes between equals in rings or direct; no server holds "
            "the weights", f"{_size(total)} in all", _link(result, p.gpus),
            sum(_share(result, part) for part in PARTS if part.endswith(("parallel", "transfer"))),
        )
    )  # fmt: skip
    return tuple(f for f in found if f is not None)


def rows(result: PlanResult) -> list[dict[str, str]]:
    """The patterns as a table."""
    return [
        {
            "Pattern": f"{p.name}: {p.here}",
            "A GPU sends in a step": f"{p.sends} over {p.link}",
            "Of the step": "–" if p.waits is None else percent(p.waits),
        }
        for p in patterns(result)
    ]


def _copies(result: PlanResult) -> Pattern | None:
    p = result.plan
    ranks = p.dp * p.cp
    if ranks == 1 and not result.sent["data"]:
        return None
    states = {0: "", 1: "; each keeps a part of the optimizer",
              2: "; each keeps a part of optimizer and gradients"}  # fmt: skip
    if p.zero_stage == 3:
        name = "Sharded" if p.shard_ranks >= ranks else "Sharded and replicated"
        here = f"weights, gradients and optimizer lie on {p.shard_ranks:,} GPUs (FSDP), gathered "
        here += "as they are needed"
        if p.shard_ranks < ranks:
            here += f"; {ranks // p.shard_ranks:,} copies of that add up their gradients"
    else:
        name = "Replicated"
        here = f"{p.dp:,} copies of the model add up their gradients{states[p.zero_stage]}"
    return Pattern(
        name, here, _gigabytes(result, "data"), _link(result, p.gpus),
        _share(result, "data_parallel"),
    )  # fmt: skip


def _gigabytes(result: PlanResult, split: str) -> str:
    return _size(result.sent[split])


def _size(sent: float) -> str:
    gigabytes = sent / GB
    return f"{number(gigabytes, 'GB', 2)}" if gigabytes >= 0.01 else "under 0.01 GB"


def _share(result: PlanResult, part: str) -> float:
    return result.parts.get(PARTS[part], 0.0)


def _link(result: PlanResult, span: int) -> str:
    """What joins so many GPUs that stand side by side."""
    choice = result.choice
    acc = choice.accelerator
    inside = acc.scaleup_technology or acc.host_link or "PCIe"
    domain = max(acc.scaleup_domain_gpus or 1, 1)
    if span <= max(min(choice.node, result.plan.gpus), domain) or choice.network is None:
        return inside
    return f"{inside} and {choice.network.name}" if choice.node > 1 else choice.network.name
