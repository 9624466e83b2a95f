"""The tables of the launch kits: a source for each row, a row for each GPU and network."""

from __future__ import annotations

import ast
import csv
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import InputError
from engine.report.launch import LaunchAsk, launch_files, network_kind
from engine.report.launch.tables import Network, cloud_of, gpu_of
from tests.report.launch_sample import CASES, TUNE, ask, one_node, plan

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "launch_gpus.csv",
        "launch_gpu_names.csv",
        "launch_settings.csv",
        "launch_clouds.csv",
        "launch_networks.csv",
    ],
)
def test_every_row_of_a_table_has_source_date_and_confidence(name: str) -> None:
    with (ROOT / "data" / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert row["source"]
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["as_of"])
            assert row["confidence"] in ("high", "medium", "low")
            if "value" in row:
                assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def test_every_gpu_of_the_catalogue_has_a_row_or_a_reason() -> None:
    with (ROOT / "data" / "accelerators.csv").open(encoding="utf-8", newline="") as file:
        rows = [(r["sku"], r["vendor"]) for r in csv.DictReader(file)]
    for sku, vendor in rows:
        asked = one_node(gpu=sku)
        if vendor in ("NVIDIA", "AMD"):
            assert launch_files(plan(**TUNE), asked)
        else:
            with pytest.raises(InputError, match="there is no launch kit"):
                launch_files(plan(**TUNE), asked)


def test_a_gpu_has_the_name_of_its_form_at_each_provider() -> None:
    # At RunPod SkyPilot's H100 is the PCIe card: half the links, another price.
    def asked_for(provider: str, gpu: str) -> str:
        asked = one_node(gpu=gpu, cloud=provider)
        return launch_files(plan(**TUNE), asked).get("skypilot.yaml", "")

    assert 'accelerators: "H100-SXM:8"' in asked_for("RunPod", "h100-sxm-80gb")
    assert 'accelerators: "H100:8"' in asked_for("RunPod", "h100-pcie-80gb")
    assert 'accelerators: "H100:8"' in asked_for("Lambda", "h100-sxm-80gb")
    assert 'accelerators: "NVIDIA-H200-NVL:8"' in asked_for("RunPod", "h200-nvl-141gb")
    assert asked_for("AWS", "h200-nvl-141gb") == ""
    with (ROOT / "data" / "launch_gpu_names.csv").open(encoding="utf-8", newline="") as file:
        rows = [(r["provider"], r["sku"]) for r in csv.DictReader(file)]
    assert len(rows) == len(set(rows))
    for provider, sku in rows:
        assert cloud_of(provider).skypilot, provider
        assert gpu_of(sku).sku == sku


def test_googles_two_machines_with_h100_are_told_apart() -> None:
    told = launch_files(plan(), ask(cloud="GCP", network="provider"))
    assert "write H100-MEGA for A3 Mega" in told["README.md"]
    # Its plug-ins keep NCCL's settings in files that the job must read.
    assert "/usr/local/gib/scripts/set_nccl_env.sh" in told["run_node.sh"]
    other = launch_files(plan(), ask(cloud="Lambda"))
    assert "H100-MEGA" not in other["README.md"]
    assert "set_nccl_env" not in other["run_node.sh"]


def test_every_network_between_nodes_of_gpus_has_a_kind() -> None:
    with (ROOT / "data" / "networks.csv").open(encoding="utf-8", newline="") as file:
        between = [r["id"] for r in csv.DictReader(file) if r["layer"] == "scale-out"]
    for network in between:
        if network == "roce-gaudi3":
            continue
        asked = ask(network=network_kind(network))
        assert "## What to watch" in launch_files(plan(), asked)["README.md"]
    with pytest.raises(InputError, match="'nvlink4' joins no nodes"):
        network_kind("nvlink4")


def test_nccl_is_told_the_way_so_that_it_never_crawls_over_tcp_unseen() -> None:
    told = {
        kind: re.findall(r"^NCCL_NET=(\S+)$", launch_files(plan(), ask(network=kind))["job.env"],
                         re.M)
        for kind in ("infiniband", "roce", "ethernet", "efa", "provider")
    }  # fmt: skip
    google = launch_files(plan(), ask(cloud="GCP", network="roce"))
    assert "NCCL_NET=" not in google["job.env"]
    assert "The provider's image brings NCCL's plug-in" in google["README.md"]
    assert told == {"infiniband": ["IB"], "roce": ["IB"], "ethernet": ["Socket"], "efa": [],
                    "provider": []}  # fmt: skip


@pytest.mark.parametrize(
    ("cloud", "network", "infra", "way", "words"),
    [
        # The cheapest price was Azure's, but the plan counts with Amazon's network.
        ("Azure", "efa", "aws", "FI_PROVIDER=efa", "Only AWS has the network of this plan"),
        ("", "efa", "aws", "FI_PROVIDER=efa", "so its machines are taken."),
        ("Lambda", "provider", "gcp", "", "the price in the forecast is Lambda's"),
        # AWS has no RoCE: with NCCL told of it, no job would start there.
        ("AWS", "roce", "aws/us-east-1", "FI_PROVIDER=efa", "AWS joins its machines by EFA"),
        ("AWS", "ethernet", "aws/us-east-1", "NCCL_NET=Socket", ""),
        ("Azure", "infiniband", "azure/us-east-1", "NCCL_NET=IB", ""),
    ],
)
def test_machines_are_rented_where_their_network_is(
    cloud: str, network: Network, infra: str, way: str, words: str
) -> None:
    kit = launch_files(plan(), ask(cloud=cloud, network=network, region="us-east-1"))
    assert f"infra: {infra}" in kit["skypilot.yaml"].replace('"', "")
    assert way in kit["job.env"]
    assert words in kit["README.md"]
    others = {"FI_PROVIDER=efa", "NCCL_NET=Socket", "NCCL_NET=IB"} - {way}
    assert not [x for x in others if x in kit["job.env"]]


def test_the_ask_is_what_the_kit_says() -> None:
    asked: LaunchAsk = ask(learning_rate=1e-3)
    kit = launch_files(plan(), asked)
    assert json.loads(kit["train.json"])["learning_rate"] == 1e-3
    assert "The learning rate is yours" in kit["README.md"]


def test_sharded_gradients_are_never_added_up_whole() -> None:
    # FSDP2 that skips its reduction keeps the whole gradient in 32 bits on every GPU: 262 GiB of a
    # model of 70 billion parameters, whatever the number of GPUs.
    tree = ast.parse(launch_files(*CASES["fsdp"])["train.py"])
    function = next(
        x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == "exchange_gradients"
    )
    scope: dict[str, Any] = {"DistributedDataParallel": type("Copies", (), {})}
    exec(compile(ast.Module([function], []), "train.py", "exec"), scope)
    called: list[tuple[str, bool]] = []
    sharded = SimpleNamespace(
        set_requires_all_reduce=lambda now: called.append(("copies", now)),
        set_requires_gradient_sync=lambda now: called.append(("shards", now)),
    )
    scope["exchange_gradients"](sharded, False)
    assert called == [("copies", False)]
    whole = scope["DistributedDataParallel"]()
    scope["exchange_gradients"](whole, False)
    assert whole.require_backward_grad_sync is False
