"""The README of a kit: what each file is, how to start, what to expect and what to watch."""

from __future__ import annotations

from dataclasses import replace

from engine.estimate.memory import plan_memory
from engine.report.launch import megatron, rent, start
from engine.report.launch.ask import is_bucket
from engine.report.launch.job import Job
from engine.report.launch.quote import markdown, one_line
from engine.report.launch.tables import cloud_of, setting, whole

STACKS = {
    "fsdp2": "PyTorch's FSDP2",
    "deepspeed": "DeepSpeed ZeRO",
    "megatron": f"Megatron-LM {megatron.RELEASE}",
    "bridge": "Megatron-Bridge",
}
FILES = {
    "job.env": "names, folders, sizes and network settings; the only file with your own texts",
    "setup.sh": "makes the Python environment",
    "requirements.txt": "the Python packages it installs",
    "run_node.sh": "starts one node's processes with torchrun",
    "slurm.sbatch": "runs it under Slurm, and again until all steps are done",
    "skypilot.yaml": "rents the nodes with SkyPilot and runs it there",
    "node_setup.yml": "Ansible: drivers, fabric and checks of the nodes",
    "check_network.py": "measures the all-reduce before money is spent on a run",
    "train.py": "the training, with FSDP2",
    "train_deepspeed.py": "the training, with DeepSpeed",
    "export_model.py": "the program behind export_model.sh",
    "export_model.sh": "turns the newest checkpoint into an ordinary model",
    "train_bridge.py": "the training, with Megatron-Bridge",
    "prepare_indexed.py": "turns text into the two files that Megatron's data loader reads",
    "import_weights.sh": "makes the published weights ready for Megatron-Bridge",
    "common.py": "data order, learning rate and progress",
    "prepare_data.py": "turns text into the token file that the training reads",
    "train.json": "batch, steps, rates and precision",
    "deepspeed.json": "DeepSpeed's own configuration",
    "checkpoint.json": "how often a checkpoint is written, how many are kept",
    "megatron_args.sh": "all arguments of Megatron-LM but those of checkpoints",
    "checkpoint_args.sh": "checkpoints: where, how often, what is kept",
    "model/config.json": "the model's configuration",
}


def readme(job: Job, files: list[str]) -> str:
    """The README for a kit of these files."""
    parts = [
        f"# {markdown(job.ask.title)}\n\n{_opening(job)}",
        _plan(job), _forecast(job), _data(job), _start(job, files), _checkpoints(job),
        _watch(job),
        _afterwards(job), _open(job, files),
        "## Files\n\n" + "".join(f"- `{name}`: {FILES[name]}\n" for name in files),
    ]  # fmt: skip
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _opening(job: Job) -> str:
    ask, plan = job.ask, job.plan
    nodes = "1 node" if ask.nodes == 1 else f"{ask.nodes} nodes"
    return (
        f"{plan.gpus} x {ask.gpu} on {nodes}, trained with {STACKS[job.trainer]}: {job.because}.\n"
    )


def _plan(job: Job) -> str:
    plan = job.plan
    rows = [
        ("GPUs", f"{plan.gpus} = {job.ask.nodes} x {job.ask.gpus_per_node}"),
        ("tensor x pipeline x context x data", f"{plan.tp} x {plan.pp} x {plan.cp} x {plan.dp}"),
        ("expert parallel", str(plan.ep)),
        ("pipeline chunks a rank", str(plan.vp)),
        ("ZeRO stage, ranks a shard", f"{plan.zero_stage}, {job.shard}"),
        ("precision", plan.precision),
        ("recomputation", plan.recompute),
        ("sequence length", f"{plan.seq_len:,} tokens"),
        ("batch", f"{plan.micro_batch} x {job.accumulation} x {plan.dp} = {job.global_batch:,} "
                  "sequences (micro-batch x accumulation x data parallel)"),
        ("tokens a step", f"{job.global_batch * plan.seq_len:,}"),
        ("steps", f"{job.total_steps:,} for {job.ask.tokens / 1e9:,.4g} billion tokens"),
        ("learning rate", f"{job.learning_rate:g}, {job.warmup_steps:,} steps of warm-up, "
                          "then a cosine"),
    ]  # fmt: skip
    text = "## The plan\n\n| what | value |\n|---|---|\n"
    text += "".join(f"| {name} | {value} |\n" for name, value in rows)
    wanted = plan.global_batch_seqs
    if wanted and wanted != job.global_batch:
        text += (
            f"\nA batch of {wanted:,} sequences can't be split evenly over {plan.dp} ranks of "
            f"{plan.micro_batch}: it is {job.global_batch:,} here.\n"
        )
    if plan.pp > 1:
        idle = (plan.pp - 1) / (plan.vp * job.accumulation + plan.pp - 1)
        text += (
            f"\nPipeline stages wait for {idle:.0%} of a step ({plan.pp} stages, "
            f"{job.accumulation} micro-batches, {plan.vp} chunks a rank).\n"
        )
    return text


def _forecast(job: Job) -> str:
    f = job.ask.forecast
    scale = job.total_steps / 3600
    text = (
        "## What to expect\n\n"
        f"- A step: {_seconds(f.step_s)}, 80% interval {_seconds(f.step_low_s)} to "
        f"{_seconds(f.step_high_s)}.\n"
        f"- All steps: {_hours(f.step_s * scale)}, {_hours(f.step_low_s * scale)} to "
        f"{_hours(f.step_high_s * scale)}, before restarts and lost work.\n"
        f"- Memory of the fullest GPU: {f.memory_gib:.1f} GiB of {f.usable_gib:.1f} GiB that can "
        "be used.\n"
    )
    if f.memory_items:
        items = ", ".join(f"{name} {gib:.1f}" for name, gib in f.memory_items.items())
        text += f"- Its parts in GiB: {items}.\n"
    if not f.calibrated:
        text += (
            "- No published step on this hardware stands behind the time: the interval is wide.\n"
        )
    if job.plan.stack == "megatron" and job.trainer in ("fsdp2", "deepspeed"):
        text += (
            "- The time is that of tuned code such as Megatron-LM's. The programs here are plain "
            "PyTorch without compilation, and may need longer: let the first steps decide.\n"
        )
    text += (
        "\nTen measured steps beat any forecast: enter yours on the training page, and the rest is "
        "recomputed from it.\n"
    )
    return text


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _hours(value: float) -> str:
    return f"{value:,.0f} h" if value >= 100 else f"{value:.2g} h"


def _data(job: Job) -> str:
    ask, bucket = job.ask, is_bucket(job.ask.dataset)
    pair = job.trainer in ("megatron", "bridge")
    what = (
        "the common start of two files that end in `.bin` and `.idx`"
        if pair
        else "a folder with `tokens.bin` and `tokens.json`"
    )
    # A bucket can't be written to by name: the files are made beside the kit, then copied there.
    target = '"$DATASET"'
    if bucket:
        target = "data/" + (ask.dataset.rpartition("/")[2] or "tokens") if pair else "data"
    commands = [". venv/bin/activate; . ./job.env"]
    if job.trainer == "megatron":
        output = target.removesuffix("_text_document") if bucket else '"${DATASET%_text_document}"'
        commands.append(
            "python Megatron-LM/tools/preprocess_data.py --input text.jsonl "
            f"--output-prefix {output} \\\n  --tokenizer-type HuggingFaceTokenizer "
            '--tokenizer-model "$TOKENIZER" --append-eod --workers 16'
        )
    else:
        program = "prepare_indexed.py" if job.trainer == "bridge" else "prepare_data.py"
        commands.append(f'python {program} "$TOKENIZER" {target} text.jsonl')
    lines = "`text`" if job.trainer == "megatron" else "`text` or `messages`"
    text = (
        f"## Data\n\nThe run reads {markdown(ask.dataset)}, {what}. Make them from lines of JSON "
        f"with {lines}, after setup.sh:\n\n```bash\n" + "\n".join(commands) + "\n```\n"
    )
    if job.trainer == "megatron" and not ask.dataset.endswith("_text_document"):
        text += (
            "\nMegatron-LM's tool adds `_text_document` to the name: add it to DATASET in job.env "
            "when the files are made this way.\n"
        )
    if not job.tokenizer:
        text += "\nSet `TOKENIZER` in job.env first: the plan names no model that brings one.\n"
    if bucket:
        text += (
            "\nThen copy what is in `data` to the bucket. Under Slurm, use a folder that all nodes "
            "see instead, and name it in job.env.\n"
        )
    elif ask.cloud:
        text += "\nThe folder must be on the rented nodes: mount it there, or give a bucket.\n"
    if job.trainer == "bridge":
        text += (
            "\nThe first start makes the published weights ready for Megatron-Bridge. That takes a "
            "while, on GPUs that are paid for: `./import_weights.sh` does it before.\n"
        )
    return text


def _start(job: Job, files: list[str]) -> str:
    several = job.ask.nodes > 1
    text = "## Start\n\n1. `bash setup.sh`\n"
    text += "2. `ansible-playbook --inventory node1,node2, node_setup.yml` makes the nodes ready"
    text += " and checks them.\n" if not job.ask.cloud else ": here it only checks them.\n"
    if job.plan.gpus == 1:
        text += "3. Nothing to measure: there is one GPU\n"
    elif several:
        text += (
            "3. Measure the network first. Under Slurm: `sbatch slurm.sbatch check_network.py`. By "
            "hand: `./run_node.sh check_network.py` on every node, with the three variables that "
            "run_node.sh names\n"
        )
    else:
        text += "3. Measure the links between the GPUs first: `./run_node.sh check_network.py`\n"
    text += (
        "4. Then one of:\n   - Slurm: `sbatch slurm.sbatch`. Where the partition allows less time, "
        "`sbatch --time=1-00:00:00 slurm.sbatch`: each job saves before its end, and the next goes "
        "on. `scancel` ends it for good\n"
    )
    if "skypilot.yaml" in files:
        how = "sky jobs launch" if job.ask.spot else "sky launch"
        text += f"   - SkyPilot: `{how} skypilot.yaml`; for a gated model add `--secret HF_TOKEN`"
        if rent.given_back(job):
            minutes = whole("idle_minutes")
            text += f". The machines are given back after {minutes} minutes without work"
        elif not job.ask.spot:
            text += ". The machine is paid for until `sky down`"
        text += "\n"
    text += "   - By hand: `./run_node.sh` on every node\n" if several else "   - `./run_node.sh`\n"
    if several:
        text += (
            "\nThe rendezvous id is chosen once, by whoever submits, the same on every node. "
            "Ranks are given by torchrun: no node sets RANK, and no address is written down.\n"
        )
    return text


def _checkpoints(job: Job) -> str:
    text = f"## Checkpoints\n\nOne every {job.save_minutes:g} minutes of work"
    if job.trainer in ("megatron", "bridge"):
        text += f", which is {job.save_steps:,} steps at the likely speed"
    text += (
        f", and one {job.stop_minutes} minutes before the limit of a job under Slurm. "
        "A run begins again from the newest complete one. "
    )
    if job.trainer == "megatron":
        text += f"One save in {whole('retain_every')} is kept, and the last.\n"
    else:
        text += f"The newest {whole('keep_checkpoints')} are kept.\n"
    if job.ask.spot:
        text += (
            "\nThese are spot machines: what is lost at an interruption is the time since the last "
            "checkpoint, and the wait for new machines.\n"
        )
    return text


def _watch(job: Job) -> str:
    f = job.ask.forecast
    lines = [
        f"- Seconds a step: above {_seconds(f.step_high_s)} after the first twenty, something is "
        "wrong. Look at the network, then for the slowest node: it paces all.",
        f"- Memory: above {f.usable_gib:.0f} GiB the next long sequence may end the run.",
        "- Loss and gradient norm: a jump of the norm comes before a jump of the loss. Go back "
        "to a checkpoint from before it.",
    ]
    if job.trainer in ("fsdp2", "deepspeed"):
        lines.append("- A loss that is no number stops the run at once, before it is saved.")
    network = {
        "infiniband": "NCCL is told to use RDMA: a run that can't stops with an error, rather than "
                      "crawl over TCP.",
        "roce": "NCCL is told to use RDMA. Ask the network's owner for the traffic class to set as "
                "NCCL_IB_TC; without flow control RoCE loses packets under load.",
        "efa": "With NCCL_DEBUG=INFO the log must name the provider efa: else the plug-in is "
               "missing, and all goes over TCP.",
        "provider": "The provider's image brings NCCL's plug-in; run_node.sh reads its settings "
                    "where Google keeps them. With NCCL_DEBUG=INFO the log must name the plug-in.",
        "ethernet": "All traffic goes over TCP. Name the card in NCCL_SOCKET_IFNAME if a node has "
                    "several.",
    }  # fmt: skip
    if job.ask.nodes > 1:
        lines.append(f"- Network: {network[start.fabric_of(job)]}")
    return "## What to watch\n\n" + "\n".join(lines) + "\n"


def _afterwards(job: Job) -> str:
    if job.trainer == "bridge" and job.plan.task == "lora":
        how = "Each checkpoint also holds the adapters as other tools read them, in its folder hf."
    elif job.trainer in ("fsdp2", "bridge"):
        how = "`./export_model.sh FOLDER` writes the newest checkpoint as an ordinary model."
    elif job.trainer == "deepspeed":
        how = "DeepSpeed puts `zero_to_fp32.py` beside the checkpoints: it joins their parts."
    else:
        how = "Megatron-Bridge's `export_ckpt` turns a checkpoint into an ordinary model."
    return f"## Afterwards\n\n{how}\n"


def _spoilt(job: Job) -> str:
    """What becomes of a checkpoint that lacks files."""
    if job.trainer in ("fsdp2", "deepspeed"):
        return "the run then begins from the one before"
    return (
        "where the newest checkpoint can't be loaded, write the number of the one before into "
        "latest_checkpointed_iteration.txt"
    )


def _open(job: Job, files: list[str]) -> str:
    """What the kit takes for granted, so that nobody has to find out at a price."""
    lines = [
        f"- The learning rate and its schedule are published ones for this size, not tuned for "
        f"your data: weight decay {setting('weight_decay'):g}, gradients clipped at "
        f"{setting('clip_norm'):g}."
    ]
    if job.ask.learning_rate is not None:
        lines = ["- The learning rate is yours; the rest of the schedule is a published one."]
    if job.trainer in ("megatron", "bridge") and job.gpu.nvidia:
        lines.append(
            "- Transformer Engine is compiled by setup.sh: the CUDA toolkit must be there."
        )
    if job.trainer == "megatron":
        lines += [f"- {note}" for note in megatron.notes(job)]
    if job.trainer == "bridge":
        lines.append(
            "- Megatron-Bridge must know the model's architecture: import_weights.sh says at once "
            "where it doesn't. It needs Python 3.12; NVIDIA's NeMo image has all of it."
        )
    if job.trainer == "deepspeed" and job.plan.cpu_offload:
        lines.append(
            "- DeepSpeed compiles its optimizer for the CPU: a C++ compiler must be there."
        )
    if job.plan.task == "qlora" and job.shard > 1:
        alone = replace(job.plan, gpus=1, zero_stage=0, shard_size=None, global_batch_seqs=0)
        gib = float(plan_memory(job.shape, alone).weights[0])
        lines.append(
            f"- The first process packs the weights into 4 bits in its host's memory (about "
            f"{gib:.0f} GiB) on its processors, minutes for a large model, and hands them on; each "
            "GPU keeps its part alone."
        )
    if job.plan.task == "finetune" and job.trainer == "fsdp2":
        lines.append("- The first node reads all weights into its memory once, and hands them on.")
    if "skypilot.yaml" not in files:
        lines.append(f"- There is no task for SkyPilot: {rent.no_task(job)}.")
    elif job.ask.cloud and not cloud_of(job.ask.cloud).skypilot:
        lines.append(
            f"- SkyPilot does not know {markdown(one_line(job.ask.cloud))}: its task takes the "
            "cheapest place that it is set up for, at another price."
        )
    if "skypilot.yaml" in files and (job.ask.cloud, job.ask.gpu) == ("GCP", "h100-sxm-80gb"):
        lines.append(
            "- H100 in skypilot.yaml is Google's A3 High, with four network cards a machine: write "
            "H100-MEGA for A3 Mega, with eight."
        )
    if "skypilot.yaml" in files and rent.on_disk(job):
        lines.append(
            f"- SkyPilot mounts no buckets at {job.ask.cloud}: checkpoints stay on the machine's "
            "disk, in the folder checkpoints at home. Copy them away before you give it back."
        )
    elif "skypilot.yaml" in files:
        lines.append(
            "- SkyPilot uploads checkpoints in the background. Machines that are taken away leave "
            f"out what is not in the bucket yet: {_spoilt(job)}."
        )
    bucket = is_bucket(job.ask.checkpoint_dir) or rent.on_disk(job)
    if "skypilot.yaml" in files and not bucket:
        lines.append(
            "- SkyPilot makes a bucket for checkpoints named after the run. Such names are shared "
            "by all customers: choose another in skypilot.yaml if it is taken."
        )
    if not job.gpu.nvidia:
        lines.append(
            "- The machine's image brings PyTorch for ROCm; setup.sh installs the rest beside it."
        )
    if job.gpu.fabric_packages and not job.ask.cloud:
        lines.append(
            "- The switches need packages from NVIDIA's own repository: set nvidia_keyring in "
            "node_setup.yml."
        )
    lines = [f"- {note}" for note in job.notes] + lines
    return "## What is taken for granted\n\n" + "\n".join(lines) + "\n"
