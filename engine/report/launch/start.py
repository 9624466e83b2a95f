"""The files that start a run: job.env, run_node.sh, setup.sh, Slurm's and SkyPilot's.

One rule keeps them safe: a user's text stands in job.env, single-quoted, and nowhere else in a
shell file; every script reads it from there. What must be the same on all nodes (the rendezvous'
id and address) is fixed once by whoever submits, never by a node.
"""

from __future__ import annotations

from engine.report.launch import megatron
from engine.report.launch.job import Job
from engine.report.launch.quote import shell
from engine.report.launch.tables import Network, cloud_of, whole

TORCH = "torch>=2.8"  # of CUDA 12.8 and later: older ones don't know Blackwell
CORE = f"megatron-core=={megatron.RELEASE.removeprefix('core_v')}"
BRIDGE = "megatron-bridge>=0.6,<0.7"
COMPILE = """
# Compiled here for the GPU: needs the CUDA toolkit of the same major version as PyTorch's.
pip install --no-build-isolation 'transformer_engine[pytorch]'
"""

# How NCCL reaches other nodes. Naming the way makes a run stop where it would else crawl over TCP.
NETWORKS: dict[Network, tuple[tuple[str, str], ...]] = {
    "infiniband": (("NCCL_NET", "IB"),),
    "roce": (("NCCL_NET", "IB"),),
    "efa": (("FI_PROVIDER", "efa"), ("FI_EFA_USE_DEVICE_RDMA", "1")),
    "ethernet": (
        ("NCCL_NET", "Socket"),
    ),
    "provider": (),  # the images of some clouds bring a plug-in with its own settings
    "none": (),
}  # fmt: skip


def job_env(job: Job) -> str:
    """Every value that the scripts need, for shells; sourced, never edited by a script."""
    ask, plan = job.ask, job.plan
    values: list[tuple[str, str]] = [
        ("RUN_NAME", ask.title),
        ("NODES", str(ask.nodes)),
        ("GPUS_PER_NODE", str(ask.gpus_per_node)),
        ("DATASET", ask.dataset),
        ("CHECKPOINT_DIR", ask.checkpoint_dir),
        ("TOTAL_STEPS", str(job.total_steps)),
        ("RDZV_PORT", str(whole("rendezvous_port"))),
        ("MAX_RESTARTS", str(whole("restarts"))),
    ]
    values.append(("TOKENIZER", job.tokenizer))
    if job.trainer == "bridge":
        values.append(("MODEL", ask.model))
    if ask.expected_bus_gb_per_s is not None:
        values.append(("EXPECTED_BUS_GB_PER_S", f"{ask.expected_bus_gb_per_s:g}"))
    fabric = fabric_of(job)
    if fabric == "ethernet":
        threads = str(whole("nccl_socket_threads"))
        values += [("NCCL_SOCKET_NTHREADS", threads), ("NCCL_NSOCKS_PERTHREAD", threads)]
    values += [*NETWORKS[fabric], ("NCCL_DEBUG", "WARN")]
    values += [
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
        ("OMP_NUM_THREADS", str(whole("cpu_threads"))),
    ]
    if (
        job.trainer in ("megatron", "bridge")
        and plan.tp * plan.cp > 1
        and not megatron.megatron_fsdp(job)
    ):
        values.append(("CUDA_DEVICE_MAX_CONNECTIONS", "1"))
    lines = "".join(f"{name}={shell(value)}\n" for name, value in values)
    return (
        "# The values of this run, for the scripts beside it. Change them here, nowhere else.\n"
        f"# shellcheck shell=bash disable=SC2034,SC2016\n{lines}"
    )


def fabric_of(job: Job) -> Network:
    """The network between nodes as NCCL must be told of it."""
    return "none" if job.ask.nodes == 1 else cloud_of(job.ask.cloud).joins_by(job.ask.network)


def _program(job: Job) -> str:
    if job.trainer == "fsdp2":
        return "train.py train.json"
    if job.trainer == "deepspeed":
        return "train_deepspeed.py train.json"
    if job.trainer == "bridge":
        return "train_bridge.py train.json"
    return "Megatron-LM/pretrain_gpt.py"


def run_node(job: Job) -> str:
    """The script that runs on every node and starts one process a GPU with torchrun."""
    several = job.ask.nodes > 1
    arguments = tokenizer = ""
    if job.trainer == "megatron":
        arguments = """
  # shellcheck source=megatron_args.sh
  . ./megatron_args.sh
  # shellcheck source=checkpoint_args.sh
  . ./checkpoint_args.sh
  program+=("${MEGATRON_ARGS[@]}" "${CHECKPOINT_ARGS[@]}")
  if [[ -n "${STOP_AT:-}" ]]; then
    minutes=$(((STOP_AT - $(date +%s)) / 60))
    program+=(--exit-duration-in-mins "$((minutes > 1 ? minutes : 1))")
  fi"""
    if job.trainer in ("megatron", "bridge"):
        tokenizer = '\n: "${TOKENIZER:?set TOKENIZER in job.env}"'
    begin = '\nexport START_FROM="$CHECKPOINT_DIR/start"' if job.trainer == "bridge" else ""
    about = (
        "# Starts this node's processes. Start it once on every node, about the same time, with\n"
        "#   JOB_ID        any word, chosen once by whoever submits, the same on all nodes\n"
        "#   HEAD_ADDRESS  name or address of one of the nodes, the same on all nodes\n"
        "#   NODE_INDEX    0 on that node, 1, 2, ... on the others\n"
        "# slurm.sbatch and skypilot.yaml set all three."
        if several
        else "# Starts the processes of the only node, one a GPU."
    )
    find = (
        """
NODE_INDEX="${NODE_INDEX:-${SLURM_NODEID:-${SKYPILOT_NODE_RANK:-}}}"
: "${JOB_ID:?set JOB_ID to one word, the same on all nodes}"
: "${HEAD_ADDRESS:?set HEAD_ADDRESS to the address of one node, the same on all nodes}"
: "${NODE_INDEX:?set NODE_INDEX to 0 on the head node and 1, 2, ... on the others}"
is_host=false
if [[ "$NODE_INDEX" == 0 ]]; then
  is_host=true
fi
rendezvous=(
  --nnodes="$NODES"
  --rdzv-backend=c10d
  --rdzv-id="$JOB_ID"
  --rdzv-endpoint="$HEAD_ADDRESS:$RDZV_PORT"
  --rdzv-conf="is_host=$is_host"
)
"""
        if several
        else """
rendezvous=(--standalone)
"""
    )
    prepare = _IMPORT if job.trainer == "bridge" else ""
    return f"""#!/usr/bin/env bash
{about}
# Given a program and its arguments, it runs that in place of the training.
set -euo pipefail
cd "$(dirname "${{BASH_SOURCE[0]}}")"
set -a
# shellcheck source=job.env
. ./job.env
set +a
# Where a bucket is mounted, its folder takes the place of its address.
export DATASET="${{DATASET_MOUNT:-$DATASET}}"
export CHECKPOINT_DIR="${{CHECKPOINT_MOUNT:-$CHECKPOINT_DIR}}"
for place in "$DATASET" "$CHECKPOINT_DIR"; do
  if [[ "$place" != /* ]]; then
    echo "$place is no folder: copy it to one that every node sees and name that in job.env" >&2
    exit 1
  fi
done
mkdir -p "$CHECKPOINT_DIR"{tokenizer}{begin}
if [[ -f venv/bin/activate ]]; then
  # shellcheck source=/dev/null
  . venv/bin/activate
fi
# Network cards write into memory that must not be moved.
ulimit -l unlimited 2>/dev/null || true
{_PROVIDER if fabric_of(job) == "provider" else ""}{find}
if [[ $# -gt 0 ]]; then
  program=("$@")
  MAX_RESTARTS=0
else
  program=({_program(job)}){arguments}{prepare}
fi
exec torchrun "${{rendezvous[@]}}" --nproc-per-node="$GPUS_PER_NODE" \\
  --max-restarts="$MAX_RESTARTS" "${{program[@]}}"
"""


# Google's plug-ins: gIB of A3 Ultra and A4, TCPXO of A3 Mega.
_PROVIDER = """
# The provider's plug-in of NCCL keeps its settings in a file of its own.
for settings in /usr/local/gib/scripts/set_nccl_env.sh \\
  /var/lib/tcpxo/lib64/nccl-env-profile.sh; do
  if [[ -r "$settings" ]]; then
    set +u
    # shellcheck source=/dev/null
    . "$settings"
    set -u
  fi
done
"""
# The published weights are made ready by the first node, once; the others wait for it.
_IMPORT = """
  if [[ "${NODE_INDEX:-0}" == 0 && ! -e "$CHECKPOINT_DIR/start.ready" ]]; then
    ./import_weights.sh
  fi
  until [[ -e "$CHECKPOINT_DIR/start.ready" ]]; do
    sleep 10
  done"""


def export_model(job: Job) -> str:
    """The script that turns the newest checkpoint into an ordinary model."""
    if job.trainer == "fsdp2":
        command = 'exec python export_model.py train.json "$output"'
    else:
        command = """exec python -c 'import os, sys
from megatron.bridge import AutoBridge
bridge = AutoBridge.from_hf_pretrained(os.environ["MODEL"])
bridge.export_ckpt(os.environ["CHECKPOINT_DIR"], sys.argv[1])' "$output\""""
    about = "# Writes the newest checkpoint as an ordinary model: ./export_model.sh OUTPUT_FOLDER"
    output = '\noutput=$(realpath -m "${1:?name a folder for the model}")'
    return _with_values(about, output, command)


def import_weights() -> str:
    """The script that turns the published weights into a checkpoint to begin from."""
    command = """mkdir -p "$CHECKPOINT_DIR"
python -c 'import os
from megatron.bridge import AutoBridge
AutoBridge.import_ckpt(os.environ["MODEL"], os.environ["CHECKPOINT_DIR"] + "/start")'
touch "$CHECKPOINT_DIR/start.ready\""""
    return _with_values("# Makes the published weights ready; once, on one node.", "", command)


def _with_values(about: str, first: str, command: str) -> str:
    """A script that runs one command with the values of job.env."""
    return f"""#!/usr/bin/env bash
{about}
set -euo pipefail{first}
{_VALUES}{command}
"""


_VALUES = """\
cd "$(dirname "${BASH_SOURCE[0]}")"
set -a
# shellcheck source=job.env
. ./job.env
set +a
export CHECKPOINT_DIR="${CHECKPOINT_MOUNT:-$CHECKPOINT_DIR}"
if [[ -f venv/bin/activate ]]; then
  # shellcheck source=/dev/null
  . venv/bin/activate
fi
"""


def requirements(job: Job) -> str:
    """The Python packages of a run, with the oldest release that will do."""
    # AMD's build of PyTorch comes with the image; another would take its place.
    below = f",<{job.gpu.torch_below}" if job.gpu.torch_below else ""
    found = [f"{TORCH}{below}", "numpy>=2"] if job.gpu.nvidia else ["numpy"]
    if job.trainer == "megatron" and not job.gpu.nvidia:
        return "\n".join([*found, "transformers>=5"]) + "\n"
    if job.trainer == "megatron":
        return "\n".join([*found, CORE, "transformers>=5", "ninja"]) + "\n"
    if job.trainer == "bridge":
        return "\n".join([*found, BRIDGE, "transformers>=5", "ninja"]) + "\n"
    found.append("transformers>=5")
    if job.trainer == "deepspeed":
        found.append("deepspeed>=0.18")
    if job.plan.task in ("lora", "qlora"):
        found.append("peft>=0.18")
    if job.plan.task == "qlora":
        found += ["bitsandbytes>=0.48", "accelerate>=1.10"]
    if job.plan.optimizer == "adam8bit":
        found.append("torchao>=0.14")
    return "\n".join(found) + "\n"


def setup(job: Job) -> str:
    """Makes the Python environment; once on a shared folder, or on every node."""
    more = ""
    venv = "" if job.gpu.nvidia else "--system-site-packages "
    if job.trainer == "megatron":
        more = f"""
if ! python -c 'import transformer_engine' 2>/dev/null; then
  echo "use AMD's image for Megatron-LM: it brings Transformer Engine for ROCm" >&2
  exit 1
fi
if [[ ! -d Megatron-LM ]]; then
  git clone --depth 1 {megatron.SOURCE_AMD}
fi
"""
    if job.trainer == "megatron" and job.gpu.nvidia:
        more = f"""{COMPILE}\
if [[ ! -d Megatron-LM ]]; then
  git clone --depth 1 --branch {megatron.RELEASE} {megatron.SOURCE}
fi
"""
    if job.trainer == "bridge":
        more = COMPILE
    # Megatron-Bridge is published for this one release of Python.
    python = "python3.12" if job.trainer == "bridge" else "python3"
    return f"""#!/usr/bin/env bash
# Makes the Python environment in ./venv. Run it once where all nodes see this folder, else on each.
set -euo pipefail
cd "$(dirname "${{BASH_SOURCE[0]}}")"
if [[ ! -x venv/bin/python ]]; then
  {python} -m venv {venv}venv
fi
# shellcheck source=/dev/null
. venv/bin/activate
pip install --requirement requirements.txt
{more}"""


def _latest(job: Job) -> str:
    megatrons = job.trainer in ("megatron", "bridge")
    return "latest_checkpointed_iteration.txt" if megatrons else "latest_step"


def slurm(job: Job) -> str:
    """The batch file: one task a node, one id for the job, again until all steps are done."""
    ask = job.ask
    days, rest = divmod(job.limit_minutes, 24 * 60)
    margin = job.stop_minutes * 60
    options = [
        f"--job-name={ask.slug}",
        f"--nodes={ask.nodes}",
        "--ntasks-per-node=1",
        f"--gpus-per-node={ask.gpus_per_node}",
        f"--time={days}-{rest // 60:02d}:{rest % 60:02d}:00",
        "--signal=B:USR1@60",
        "--requeue",
        "--open-mode=append",
        "--output=%x-%j.log",
    ]
    # Several nodes run at the pace of the slowest, so nobody else may use them meanwhile.
    options += (
        ["--exclusive", "--mem=0"] if ask.nodes > 1 else [f"--cpus-per-gpu={whole('cpu_threads')}"]
    )
    if ask.partition:
        options.append(f"--partition={ask.partition}")
    if ask.account:
        options.append(f"--account={ask.account}")
    header = "".join(f"#SBATCH {option}\n" for option in options)
    return f"""#!/usr/bin/env bash
{header}
# Submit it from the kit's folder, on storage that every node sees: sbatch slurm.sbatch
# Given a program, it runs that once in place of the training: sbatch slurm.sbatch check_network.py
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
# shellcheck source=job.env
. ./job.env

# Decided here, once, and handed to every node.
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
HEAD_ADDRESS="${{hosts[0]}}"
JOB_ID="$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}"
# A last save fits before the end, wherever --time puts it.
now=$(date +%s)
ends="${{SLURM_JOB_END_TIME:-$((now + {job.limit_minutes} * 60))}}"
margin=$(((ends - now) / 2 < {margin} ? (ends - now) / 2 : {margin}))
STOP_AT=$((ends - margin))
export HEAD_ADDRESS JOB_ID STOP_AT

# A task gets all processors of its node, not the one that Slurm would bind it to.
start=(srun --kill-on-bad-exit=1 --cpu-bind=none ./run_node.sh)
if (($# > 0)); then
  exec "${{start[@]}}" "$@"
fi

steps_saved() {{
  local mark="$CHECKPOINT_DIR/{_latest(job)}"
  if [[ -s "$mark" ]]; then
    cat "$mark"
  else
    echo 0
  fi
}}

before=$(steps_saved)
status=0
"${{start[@]}}" &
# A minute before the limit Slurm says so: what is saved by then is gone on from.
trap 'echo "still at work at the limit: cut off" >&2' USR1
wait "$!" || status=$?
after=$(steps_saved)
echo "steps saved: $after of $TOTAL_STEPS"

if ((after >= TOTAL_STEPS)); then
  exit 0
fi
if [[ "$(squeue --noheader --format=%T --jobs="$SLURM_JOB_ID")" != RUNNING ]]; then
  echo "cancelled, or taken back by Slurm: nothing is queued from here" >&2
  exit 1
fi
# Go on in a new job of the same number, but only where this one got further.
if ((after > before)); then
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
echo "no step was saved in this job: not queued again" >&2
exit $((status == 0 ? 1 : status))
"""
