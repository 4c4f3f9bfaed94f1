"""Elastic training: how few and how many workers, and how they find each other."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.shapes import ANYTHING, TEXT, TRUTH, WHOLE, ListOf, closed, one_of, within
from admission.domain.world import Review
from kube import Manifest

ELASTIC_POLICY = closed(
    minReplicas=WHOLE,
    maxReplicas=WHOLE,
    rdzvBackend=TEXT,
    rdzvPort=WHOLE,
    rdzvHost=TEXT,
    rdzvId=TEXT,
    rdzvConf=ListOf(closed(key=TEXT, value=TEXT)),
    standalone=TRUTH,
    nProcPerNode=WHOLE,
    maxRestarts=WHOLE,
    metrics=ListOf(ANYTHING),
)
BACKENDS = ("c10d", "etcd", "etcd-v2")
PROCESSES = ("auto", "cpu", "gpu")


def default_elastic(spec: Manifest, replicas: Mapping[str, Any]) -> None:
    """Minimum and maximum are each other's default, else the number of workers."""
    policy = spec.get("elasticPolicy")
    if policy is None:
        return
    workers = (replicas.get("Worker") or {}).get("replicas", 1)
    least, most = policy.get("minReplicas"), policy.get("maxReplicas")
    policy.setdefault("minReplicas", workers if most is None else most)
    policy.setdefault("maxReplicas", workers if least is None else least)
    if "standalone" not in policy:
        policy.setdefault("rdzvBackend", "c10d")


def check_elastic(path: str, review: Review, replicas: Mapping[str, Any]) -> Iterable[FieldError]:
    """An elastic job has workers, and stays between its minimum and its maximum when it is scaled.

    It may begin outside of them, as upstream: a bound that is left out follows from the other one, not from the workers.
    """
    spec, where = review.spec, "spec.elasticPolicy"
    policy = spec.get("elasticPolicy")
    if policy is None:
        return
    if "Worker" not in replicas:
        yield FieldError(f"{path}.Worker", None, "an elastic job needs Worker replicas; add them or drop elasticPolicy")
    yield from within(f"{where}.minReplicas", policy["minReplicas"], 1)
    if policy["maxReplicas"] < policy["minReplicas"]:
        yield FieldError(
            f"{where}.maxReplicas", policy["maxReplicas"], f"must be at least minReplicas ({policy['minReplicas']})"
        )
    elif "Worker" in replicas and _is_scaled(path.rpartition(".")[2], review):
        yield from _check_workers(f"{path}.Worker.replicas", replicas["Worker"]["replicas"], policy)
    yield from one_of(f"{where}.rdzvBackend", policy.get("rdzvBackend"), BACKENDS)
    yield from within(f"{where}.rdzvPort", policy.get("rdzvPort"), 1, 65_535)
    yield from within(f"{where}.maxRestarts", policy.get("maxRestarts"), 0)
    if "nProcPerNode" in policy and spec.get("nprocPerNode", "auto") != "auto":
        rule = "is the old place of spec.nprocPerNode; give only one of the two"
        yield FieldError(f"{where}.nProcPerNode", policy["nProcPerNode"], rule)


def _is_scaled(field: str, review: Review) -> bool:
    """Whether a job that is there gets another number of workers, or other bounds for it."""
    if review.old is None:
        return False
    before, after = review.old.spec, review.spec
    workers = [((spec.get(field) or {}).get("Worker") or {}).get("replicas", 1) for spec in (before, after)]
    bounds = [
        [(spec.get("elasticPolicy") or {}).get(name) for name in ("minReplicas", "maxReplicas")]
        for spec in (before, after)
    ]
    return workers[0] != workers[1] or bounds[0] != bounds[1]


def _check_workers(path: str, count: int, policy: Manifest) -> Iterable[FieldError]:
    least, most = policy["minReplicas"], policy["maxReplicas"]
    if not least <= count <= most:
        name, bound = ("minReplicas", least) if count < least else ("maxReplicas", most)
        rule = (
            f"must be from {least} to {most} as spec.elasticPolicy says; set it so, or change {name} ({bound}) with it"
        )
        yield FieldError(path, count, rule)


def check_processes(path: str, value: str) -> Iterable[FieldError]:
    """Processes per node: a number from 1 on, or a word that says what they are counted by."""
    if value not in PROCESSES and not (value.isdigit() and int(value) > 0):
        yield FieldError(path, value, f"must be one of {', '.join(PROCESSES)} or a number from 1 on")
