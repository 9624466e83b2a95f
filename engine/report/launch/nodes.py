"""Ansible's playbook that makes machines ready, or checks those that a provider made ready.

No user's text but one host name (checked by a pattern) gets in: Ansible reads braces as code.
"""

from __future__ import annotations

from typing import Any

from engine.report.launch.job import Job
from engine.report.launch.quote import yaml

Task = dict[str, Any]


def playbook(job: Job) -> str:
    """The playbook: one's own machines get drivers and fabric, rented ones checks alone."""
    ask, gpu = job.ask, job.gpu
    own = not ask.cloud
    variables: dict[str, Any] = {"gpus_per_node": ask.gpus_per_node}
    tasks: list[Task] = []
    if own:
        tasks += _system()
        if gpu.driver_branch:
            variables["driver_branch"] = gpu.driver_branch
            if gpu.fabric_packages:
                # Address or path of NVIDIA's cuda-keyring package, which adds its repository.
                variables["nvidia_keyring"] = ""
            tasks += _driver(job)
        if ask.network in ("infiniband", "roce"):
            tasks += _rdma(job, variables)
    tasks += _checks(job)
    play = {
        "name": "Make the nodes ready" if own else "Check the nodes",
        "hosts": "all",
        "become": True,
        "gather_facts": True,
        "vars": variables,
        "tasks": tasks,
    }
    run = "ansible-playbook --inventory node1,node2, node_setup.yml"
    about = f"# {run}\n# The comma after the last name is needed: it makes a list of names.\n"
    return f"{about}---\n{yaml([play])}"


def _system() -> list[Task]:
    return [
        {
            "name": "The playbook knows Ubuntu's packages",
            "ansible.builtin.assert": {
                "that": ["ansible_facts['distribution'] == 'Ubuntu'"],
                "fail_msg": "these tasks install Ubuntu packages: adapt them to your system",
            },
        },
        {
            "name": "Install time service and compiler",
            "ansible.builtin.apt": {
                "name": ["chrony", "build-essential", "python3-venv", "git"],
                "update_cache": True,
            },
        },
        {
            "name": "Keep the clocks of all nodes together",
            "ansible.builtin.systemd_service": {
                "name": "chrony", "enabled": True, "state": "started",
            },
        },
        {
            "name": "Allow programs to pin memory for network cards",
            "ansible.builtin.copy": {
                "dest": "/etc/security/limits.d/90-memlock.conf",
                "content": "* soft memlock unlimited\n* hard memlock unlimited\n",
                "mode": "0644",
            },
        },
    ]  # fmt: skip


def _driver(job: Job) -> list[Task]:
    """Driver, persistence and fabric manager, of one branch; a restart only where it changed."""
    gpu = job.gpu
    suffix = "-open" if gpu.open_modules else ""
    packages = [f"nvidia-headless-{{{{ driver_branch }}}}-server{suffix}",
                "nvidia-utils-{{ driver_branch }}-server"]  # fmt: skip
    if gpu.fabric_manager:
        packages.append("nvidia-fabricmanager-{{ driver_branch }}")
    tasks: list[Task] = []
    if gpu.fabric_packages:
        tasks += [
            {
                "name": "Packages of the switches come from NVIDIA's own repository",
                "ansible.builtin.assert": {
                    "that": ["nvidia_keyring | length > 0"],
                    "fail_msg": "set nvidia_keyring to NVIDIA's cuda-keyring package",
                },
            },
            {
                "name": "Add NVIDIA's repository",
                "ansible.builtin.apt": {"deb": "{{ nvidia_keyring }}"},
            },
            {
                "name": "Install what fifth-generation switches need",
                "ansible.builtin.apt": {"name": list(gpu.fabric_packages), "update_cache": True},
            },
        ]
    tasks += [
        {
            "name": "Install the driver and what must be of its branch",
            "ansible.builtin.apt": {"name": packages},
            "register": "driver",
        },
        {
            "name": "Hold them at this version",
            "ansible.builtin.dpkg_selections": {"name": "{{ item }}", "selection": "hold"},
            "loop": packages,
        },
        {
            "name": "Restart with the new driver",
            "ansible.builtin.reboot": {"reboot_timeout": 1800},
            "when": "driver is changed",
        },
        {
            "name": "Keep the driver loaded between jobs",
            "ansible.builtin.command": {"cmd": "nvidia-smi -pm 1"},
            "changed_when": False,
        },
    ]
    if gpu.fabric_manager:
        tasks.append(
            {
                "name": "Run the manager of the switches between the GPUs",
                "ansible.builtin.systemd_service": {
                    "name": "nvidia-fabricmanager", "enabled": True, "state": "started",
                },
            }
        )  # fmt: skip
    return tasks


def _rdma(job: Job, variables: dict[str, Any]) -> list[Task]:
    """Cards that read GPU memory; a subnet manager on the one machine named, if any."""
    tasks: list[Task] = [
        {
            "name": "Install RDMA tools",
            "ansible.builtin.apt": {
                "name": ["rdma-core", "ibverbs-utils", "infiniband-diags", "perftest"],
            },
        },
    ]
    if job.gpu.nvidia and job.gpu.driver_branch:
        tasks += [
            {
                "name": "Let network cards read GPU memory, now",
                "ansible.builtin.command": {"cmd": "modprobe nvidia_peermem"},
                "changed_when": False,
                # With the open modules NCCL goes through DMA-BUF where the kernel lacks this one's
                # interface; the closed modules have no other way.
                **({"failed_when": False} if job.gpu.open_modules else {}),
            },
            {
                "name": "Let network cards read GPU memory, after each start",
                "ansible.builtin.copy": {
                    "dest": "/etc/modules-load.d/nvidia-peermem.conf",
                    "content": "nvidia_peermem\n",
                    "mode": "0644",
                },
            },
        ]
    if job.ask.network == "infiniband" and job.ask.subnet_manager_host:
        variables["subnet_manager_host"] = job.ask.subnet_manager_host
        tasks += [
            {
                "name": "Install the subnet manager on its one machine",
                "ansible.builtin.apt": {"name": "opensm"},
                "when": "inventory_hostname == subnet_manager_host",
            },
            {
                "name": "Run the subnet manager there",
                "ansible.builtin.systemd_service": {
                    "name": "opensm", "enabled": True, "state": "started",
                },
                "when": "inventory_hostname == subnet_manager_host",
            },
        ]  # fmt: skip
    return tasks


def _checks(job: Job) -> list[Task]:
    """What must hold before a run: all GPUs there, no memory errors, links up, clocks right."""
    gpu = job.gpu
    count = "nvidia-smi --list-gpus" if gpu.nvidia else "rocm-smi --showid --csv"
    lines = "gpus.stdout_lines | length"
    if not gpu.nvidia:
        lines = "gpus.stdout_lines | select('match', 'card') | list | length"
    tasks: list[Task] = [
        {
            "name": "List the GPUs",
            "ansible.builtin.command": {"cmd": count},
            "register": "gpus",
            "changed_when": False,
        },
        {
            "name": "All GPUs are there",
            "ansible.builtin.assert": {
                "that": [f"{lines} == gpus_per_node"],
                "fail_msg": "a GPU is missing on this node",
            },
        },
    ]
    if gpu.nvidia:
        tasks += [
            {
                "name": "Read memory errors",
                "ansible.builtin.command": {
                    "cmd": "nvidia-smi --query-gpu=ecc.errors.uncorrected.volatile.total"
                    " --format=csv,noheader",
                },
                "register": "errors",
                "changed_when": False,
            },
            {
                "name": "No GPU has memory errors",
                "ansible.builtin.assert": {
                    "that": ["errors.stdout_lines | map('trim') | "
                             "reject('in', ['0', '[N/A]']) | list | length == 0"],
                    "fail_msg": "uncorrected memory errors: reset or replace this GPU",
                },
            },
        ]  # fmt: skip
    if job.ask.network in ("infiniband", "roce"):
        tasks += [
            {
                "name": "Read the states of the network ports",
                "ansible.builtin.shell": {
                    "cmd": "cat /sys/class/infiniband/*/ports/*/state",
                },
                "register": "ports",
                "changed_when": False,
            },
            {
                "name": "Every port of the fabric is up",
                "ansible.builtin.assert": {
                    "that": [
                        "ports.stdout_lines | reject('search', 'ACTIVE') | list | length == 0"
                    ],
                    "fail_msg": "a port is down: cable, switch or subnet manager",
                },
            },
        ]
    tasks += [
        {
            "name": "Ask whether the clock is kept right",
            "ansible.builtin.command": {"cmd": "timedatectl show --property=NTPSynchronized"},
            "register": "clock",
            "changed_when": False,
        },
        {
            "name": "The clock is kept right",
            "ansible.builtin.assert": {
                "that": ["'NTPSynchronized=yes' in clock.stdout"],
                "fail_msg": "logs of several nodes can't be compared: start a time service",
            },
        },
    ]
    return tasks
