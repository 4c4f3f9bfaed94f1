"""Elastic training: how few and how many workers, and how they find each other."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.shapes import ANYTHING, TEXT, TRUTH, WHOLE, ListOf, closed, fields, one_of, within
from kube import Manifest

ELASTIC_POLICY = closed(
    minReplicas=WHOLE,
    maxReplicas=WHOLE,
    rdzvBackend=TEXT,
    rdzvPort=WHOLE,
    rdzvHost=TEXT,
    rdzvId=TEXT,
    rdzvConf=ListOf(fields(key=TEXT, value=TEXT)),
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


def check_elastic(path: str, spec: Manifest, replicas: Mapping[str, Any]) -> Iterable[FieldError]:
    """An elastic job has workers, between its minimum and its maximum."""
    policy, where = spec.get("elasticPolicy"), "spec.elasticPolicy"
    if policy is None:
        return
    if "Worker" not in replicas:
        yield FieldError(f"{path}.Worker", None, "an elastic job needs Worker replicas; add them or drop elasticPolicy")
    yield from within(f"{where}.minReplicas", policy["minReplicas"], 1)
    if policy["maxReplicas"] < policy["minReplicas"]:
        yield FieldError(
            f"{where}.maxReplicas", policy["maxReplicas"], f"must be at least minReplicas ({policy['minReplicas']})"
        )
    yield from one_of(f"{where}.rdzvBackend", policy.get("rdzvBackend"), BACKENDS)
    yield from within(f"{where}.rdzvPort", policy.get("rdzvPort"), 1, 65_535)
    yield from within(f"{where}.maxRestarts", policy.get("maxRestarts"), 0)
    if "nProcPerNode" in policy and spec.get("nprocPerNode", "auto") != "auto":
        rule = "is the old place of spec.nprocPerNode; give only one of the two"
        yield FieldError(f"{where}.nProcPerNode", policy["nProcPerNode"], rule)


def check_processes(path: str, value: str) -> Iterable[FieldError]:
    """Processes per node: a number from 1 on, or a word that says what they are counted by."""
    if value not in PROCESSES and not (value.isdigit() and int(value) > 0):
        yield FieldError(path, value, f"must be one of {', '.join(PROCESSES)} or a number from 1 on")
