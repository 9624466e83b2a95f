"""What a person can answer, in their own words: the choices of every categorical question.

Each choice carries the label that a page shows. No numbers here: ranges and priors live in
`data/kinds.csv` and `data/parameters.csv`.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The kind of work; it decides which facts are asked and which stages the job has."""

    llm_pretraining = "llm_pretraining"
    llm_finetuning = "llm_finetuning"
    lora = "lora"
    dl_training = "dl_training"
    batch_inference = "batch_inference"
    online_inference = "online_inference"
    etl = "etl"
    streaming = "streaming"
    database = "database"
    web = "web"
    simulation = "simulation"
    rendering = "rendering"
    search = "search"
    recsys = "recsys"
    rl = "rl"
    pipeline = "pipeline"
    other = "other"


KIND_LABELS: dict[Kind, str] = {
    Kind.llm_pretraining: "Pre-train a language model",
    Kind.llm_finetuning: "Fine-tune a language model (all weights)",
    Kind.lora: "Fine-tune with LoRA or QLoRA",
    Kind.dl_training: "Train another deep network (vision, speech, tabular)",
    Kind.batch_inference: "Run a model over a batch (nightly, offline)",
    Kind.online_inference: "Answer requests with a model (online)",
    Kind.etl: "ETL and data preparation",
    Kind.streaming: "Real-time analytics, events and logs",
    Kind.database: "Database",
    Kind.web: "Web services and microservices",
    Kind.simulation: "Simulation, optimization, HPC",
    Kind.rendering: "Rendering and video",
    Kind.search: "Search and crawling",
    Kind.recsys: "Recommendation with large tables",
    Kind.rl: "Reinforcement learning with CPU simulators",
    Kind.pipeline: "A pipeline: prepare, train, serve",
    Kind.other: "Something else, or not sure yet",
}


class Certainty(StrEnum):
    """How sure the person is of an answer."""

    exact = "exact"
    roughly = "roughly"
    guess = "guess"


CERTAINTY_LABELS = {
    Certainty.exact: "Measured",
    Certainty.roughly: "Roughly",
    Certainty.guess: "A guess",
}


class Bottleneck(StrEnum):
    """The resource with the largest share of the time."""

    unknown = "unknown"
    compute = "compute"
    memory_bandwidth = "memory_bandwidth"
    memory_capacity = "memory_capacity"
    network = "network"
    disk_io = "disk_io"
    coordination = "coordination"


RESOURCES: tuple[Bottleneck, ...] = tuple(b for b in Bottleneck if b is not Bottleneck.unknown)

BOTTLENECK_LABELS = {
    Bottleneck.unknown: "I don't know",
    Bottleneck.compute: "Arithmetic (the processors are busy)",
    Bottleneck.memory_bandwidth: "Memory bandwidth (waiting for memory)",
    Bottleneck.memory_capacity: "Memory size (the data does not fit)",
    Bottleneck.network: "Network (waiting for other machines or the internet)",
    Bottleneck.disk_io: "Disk and storage",
    Bottleneck.coordination: "Coordination (locks, branching, one thing after another)",
}


class Symptom(StrEnum):
    """Something that can be seen on a dashboard and points to a bottleneck."""

    cpu_full = "cpu_full"
    gpu_full = "gpu_full"
    gpu_low_network_full = "gpu_low_network_full"
    gpu_low_cpu_full = "gpu_low_cpu_full"
    disk_wait = "disk_wait"
    swapping = "swapping"
    low_ipc = "low_ipc"
    lock_wait = "lock_wait"
    nodes_dont_help = "nodes_dont_help"
    network_wait = "network_wait"


SYMPTOM_LABELS = {
    Symptom.cpu_full: "Every CPU core is above 90% and the disks are quiet",
    Symptom.gpu_full: "The GPU's arithmetic units (SM activity) stay above 80%",
    Symptom.gpu_low_network_full: "The GPU is busy below 50% while the network is full",
    Symptom.gpu_low_cpu_full: "The GPU is busy below 50% while CPU cores or disks are full",
    Symptom.disk_wait: "CPU time is spent in I/O wait",
    Symptom.swapping: "Machines run out of memory, swap or spill to disk",
    Symptom.low_ipc: "Cores are busy, yet do little per cycle (memory stalls)",
    Symptom.lock_wait: "Threads or transactions wait for locks",
    Symptom.nodes_dont_help: "Adding machines brings little or makes it slower",
    Symptom.network_wait: "Most of the time goes into waiting for remote answers",
}


class FailureMode(StrEnum):
    """The failure that would hurt most."""

    unknown = "unknown"
    machine_loss = "machine_loss"
    data_loss = "data_loss"
    long_run_loss = "long_run_loss"
    silent_corruption = "silent_corruption"
    late_answers = "late_answers"
    wasted_spend = "wasted_spend"


FAILURE_LABELS = {
    FailureMode.unknown: "I don't know",
    FailureMode.machine_loss: "A machine dies and the service stops",
    FailureMode.data_loss: "Data is lost, or two copies disagree",
    FailureMode.long_run_loss: "A long run dies and starts again",
    FailureMode.silent_corruption: "Results are wrong and nobody notices",
    FailureMode.late_answers: "Answers come too late",
    FailureMode.wasted_spend: "Money is spent on idle machines",
}


class Downtime(StrEnum):
    """How long the job may be away before it hurts."""

    unknown = "unknown"
    seconds = "seconds"
    minutes = "minutes"
    hours = "hours"
    day = "day"


DOWNTIME_LABELS = {
    Downtime.unknown: "I don't know",
    Downtime.seconds: "Seconds",
    Downtime.minutes: "Minutes",
    Downtime.hours: "Some hours",
    Downtime.day: "A day or more",
}


class ModelClass(StrEnum):
    """What kind of model answers; it decides which measured rates apply."""

    llm = "llm"
    neural = "neural"
    recommender = "recommender"
    trees = "trees"


MODEL_CLASS_LABELS = {
    ModelClass.llm: "Language model",
    ModelClass.neural: "Neural network (vision, text encoder, fraud score)",
    ModelClass.recommender: "Recommender network",
    ModelClass.trees: "Boosted trees or a linear model",
}


class Rewrite(StrEnum):
    """Whether the code can be changed to run on other hardware."""

    unknown = "unknown"
    ready = "ready"
    possible = "possible"
    impossible = "impossible"


REWRITE_LABELS = {
    Rewrite.unknown: "I don't know",
    Rewrite.ready: "It runs on GPUs already, or a library does it",
    Rewrite.possible: "It would have to be rewritten",
    Rewrite.impossible: "It can't be rewritten",
}


class Location(StrEnum):
    """Where data and machines may be."""

    anywhere = "anywhere"
    eu = "eu"
    us = "us"
    in_house = "in_house"


LOCATION_LABELS = {
    Location.anywhere: "Anywhere",
    Location.eu: "In the European Union",
    Location.us: "In the United States",
    Location.in_house: "In our own rooms only",
}


class Consistency(StrEnum):
    """What readers may see right after a write."""

    unknown = "unknown"
    none = "none"
    eventual = "eventual"
    strong = "strong"


CONSISTENCY_LABELS = {
    Consistency.unknown: "I don't know",
    Consistency.none: "No shared data",
    Consistency.eventual: "A moment's delay is fine",
    Consistency.strong: "Everyone sees the same at once",
}


class Team(StrEnum):
    """What the team has operated before."""

    unknown = "unknown"
    none = "none"
    cloud = "cloud"
    gpu_cluster = "gpu_cluster"
    own_hardware = "own_hardware"


TEAM_LABELS = {
    Team.unknown: "I don't know",
    Team.none: "No operations experience",
    Team.cloud: "Cloud machines",
    Team.gpu_cluster: "GPU clusters",
    Team.own_hardware: "Own hardware in a data centre",
}


class Precision(StrEnum):
    """The arithmetic that the job needs."""

    unknown = "unknown"
    low = "low"
    fp32 = "fp32"
    fp64 = "fp64"


PRECISION_LABELS = {
    Precision.unknown: "I don't know",
    Precision.low: "16 bits or fewer (deep learning)",
    Precision.fp32: "32 bits (single)",
    Precision.fp64: "64 bits (double)",
}


class Current(StrEnum):
    """What the job runs on today."""

    none = "none"
    cpu = "cpu"
    gpu = "gpu"


CURRENT_LABELS = {
    Current.none: "Nothing yet",
    Current.cpu: "CPU servers",
    Current.gpu: "GPUs",
}


class UtilizationBy(StrEnum):
    """In which form the useful hours are given."""

    hours = "hours"
    runs = "runs"
    schedule = "schedule"


UTILIZATION_BY_LABELS = {
    UtilizationBy.hours: "Useful hours a month",
    UtilizationBy.runs: "Runs a month and hours a run",
    UtilizationBy.schedule: "A weekly schedule",
}
