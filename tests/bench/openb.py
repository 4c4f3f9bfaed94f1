"""The public trace of shared GPUs at Alibaba (cluster-trace-gpu-v2023, "openb"): nodes and pods as objects, and their order.

The order is that of the FGD paper (USENIX ATC'23): all pods of a list, shuffled, then as many more drawn from them as bring the cards
asked for to 130 % of those there are. Pods never leave, and one that finds no place is dropped.
"""

import csv
import gzip
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kube import Key, Manifest, Object

FOLDER = "TIDEGATE_OPENB"
ELSEWHERE = """no trace in {folder}.
It is public: https://github.com/alibaba/clusterdata, folder cluster-trace-gpu-v2023/csv. Put openb_node_list_gpu_node.csv and
the lists openb_pod_list_*.csv (or .csv.gz) into one folder and name it in the environment variable TIDEGATE_OPENB."""

TRACES = (
    *("default", "gpushare40", "gpushare60", "gpushare80", "gpushare100"),
    *("multigpu20", "multigpu30", "multigpu40", "multigpu50"),
    *("gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33"),
    *("cpu050", "cpu100", "cpu200", "cpu250"),
)
MODEL = "gpu-card-model"
CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
INFLATION = 1.3
CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Job:
    """One pod of a list: CPU in milli-cores, memory in MiB, cards, percent of each, the card models that will do (none: any)."""

    cpu: int
    memory: int
    cards: int
    percent: int
    models: tuple[str, ...]

    @property
    def asked(self) -> int:
        """Percent of cards in all."""
        return self.cards * self.percent


@dataclass(frozen=True, slots=True)
class Trace:
    """A list of pods. ``jobs`` are the distinct ones; ``kinds`` says for every pod which of them it is."""

    name: str
    jobs: tuple[Job, ...]
    kinds: tuple[int, ...]


def folder() -> Path:
    """Where the data is; raises SystemExit saying how to get it."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "openb"
    found = Path(os.environ.get(FOLDER) or beside)
    if not any(found.glob("openb_node_list_gpu_node.csv*")):
        raise SystemExit(ELSEWHERE.format(folder=found))
    return found


def nodes(data: Path) -> list[Object]:
    """The nodes that have cards."""
    return [_node(row) for row in _rows(data, "openb_node_list_gpu_node")]


def trace(data: Path, name: str) -> Trace:
    """The pod list of that name."""
    known: dict[Job, int] = {}
    kinds = [known.setdefault(_job(row), len(known)) for row in _rows(data, f"openb_pod_list_{name}")]
    return Trace(name, tuple(known), tuple(kinds))


def arrivals(pods: Trace, capacity: int, seed: int) -> list[int]:
    """The kinds of the pods in the order in which they come; ``capacity`` is in percent of one card."""
    draw = np.random.default_rng(seed)
    kinds = np.array(pods.kinds)
    asked = np.array([job.asked for job in pods.jobs])
    order = draw.permutation(kinds)
    missing = INFLATION * capacity - asked[order].sum()
    if missing > 0:
        order = np.concatenate([order, draw.choice(kinds, size=int(1.1 * missing / asked[kinds].mean()) + 100)])
    found: list[int] = order.tolist()
    return found


def body(job: Job) -> Manifest:
    """The part of a pod that all pods of a kind share."""
    requests: Manifest = {"cpu": f"{job.cpu}m", "memory": f"{job.memory}Mi"}
    if job.cards:
        requests |= {CORE: job.asked, RATIO: job.asked}
    spec: Manifest = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "schedulerName": "tidegate",
    }
    if len(job.models) == 1:
        spec["nodeSelector"] = {MODEL: job.models[0]}
    elif job.models:
        term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": list(job.models)}]}
        required = {"nodeSelectorTerms": [term]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"spec": spec}


def pod(number: int, shared: Manifest) -> Object:
    """The pod that comes as the ``number``-th."""
    name = f"pod-{number:06}"
    return Object(Key("Pod", "default", name), name, {"creationTimestamp": CREATED}, shared, {"phase": "Pending"})


def _node(row: Mapping[str, str]) -> Object:
    name, cards = row["sn"], int(row["gpu"])
    allocatable = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": 1000}
    allocatable |= {CORE: 100 * cards, RATIO: 100 * cards}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    return Object(Key("Node", "", name), name, {"labels": {MODEL: row["model"]}}, {"spec": {}}, status)


def _job(row: Mapping[str, str]) -> Job:
    cards = int(row["num_gpu"])
    models = tuple(sorted({part for part in (row.get("gpu_spec") or "").split("|") if part}))
    percent = int(row["gpu_milli"]) // 10 if cards else 0
    return Job(int(row["cpu_milli"]), int(row["memory_mib"]), cards, percent, models)


def _rows(data: Path, name: str) -> Iterator[Mapping[str, str]]:
    plain = data / f"{name}.csv"
    with plain.open() if plain.exists() else gzip.open(data / f"{name}.csv.gz", "rt") as text:
        yield from csv.DictReader(text)
