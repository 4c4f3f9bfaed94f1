"""The pods and services of a v1 job: one headless service per pod, so that its name resolves from the start.

Upstream's init container ``init-pytorch``, which waits until the master's name resolves, is left out: here a gang starts
whole, and the services name pods that are not ready yet too.
"""

from typing import Any

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.frameworks import TENSORFLOW
from job_controller.domain.kubeflow.gang import carried_labels, gang_annotations
from job_controller.domain.kubeflow.rendezvous import rendezvous_env
from job_controller.domain.kubeflow.rendezvous.variables import with_variables
from job_controller.domain.kubeflow.replica_specs import (
    JOB_NAME,
    JOB_ROLE,
    OPERATOR_NAME,
    REPLICA_INDEX,
    REPLICA_TYPE,
    ReplicaSpec,
    ReplicatedJob,
    member_name,
)
from kube import Manifest


def member_labels(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> dict[str, str]:
    """The labels by which a pod, and its service, is found."""
    labels = {**replica_selector(job, replica), REPLICA_INDEX: str(index)}
    return {**labels, JOB_ROLE: "master"} if _is_master(job, replica, index) else labels


def replica_selector(job: ReplicatedJob, replica: ReplicaSpec) -> dict[str, str]:
    """The labels that all pods of one type have in common, and no other pod has."""
    return {JOB_NAME: job.name, OPERATOR_NAME: job.framework.operator_name, REPLICA_TYPE: replica.word}


def pod_manifest(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> Manifest:
    """The pod ``index`` of ``replica``, with its environment."""
    template = replica.template.get("metadata") or {}
    labels = {**carried_labels(job.source), **(template.get("labels") or {}), **member_labels(job, replica, index)}
    annotations = {**(template.get("annotations") or {}), **gang_annotations(job.name, replica.word)}
    name = member_name(job.name, replica.type, index)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": owned_metadata(job.source, name, labels, annotations),
        "spec": _pod_spec(job, replica, index),
    }


def service_manifest(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> Manifest:
    """The headless service that gives the pod its name."""
    labels = member_labels(job, replica, index)
    name = member_name(job.name, replica.type, index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_metadata(job.source, name, labels, {}),
        "spec": headless_service_spec(labels, _ports(job, replica)),
    }


def headless_service_spec(selector: dict[str, str], ports: list[Manifest]) -> Manifest:
    """A service without an address of its own; members look each other up before they are ready."""
    spec: Manifest = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True}
    return {**spec, "ports": ports} if ports else spec


def _pod_spec(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> Manifest:
    # ExitCode is decided here, on the code of the framework's container: the node must not restart anything.
    policy = "Never" if replica.restart_policy == "ExitCode" else replica.restart_policy
    env = rendezvous_env(job, replica, index)
    only = TENSORFLOW.container if job.framework is TENSORFLOW else None
    containers = [
        with_variables(container, env) if only in (None, container.get("name")) else container
        for container in replica.pod_spec.get("containers") or []
    ]
    return {**replica.pod_spec, "containers": containers, "restartPolicy": policy}


def _ports(job: ReplicatedJob, replica: ReplicaSpec) -> list[Manifest]:
    containers = replica.pod_spec.get("containers") or []
    given: list[Any] = next((c.get("ports") or [] for c in containers if c.get("name") == job.framework.container), [])
    ports = {
        port.get("name") or str(port["containerPort"]): port["containerPort"]
        for port in given
        if port.get("containerPort")
    }
    ports.setdefault(job.framework.port_name, job.framework.port)
    return [{"name": name, "port": port, "targetPort": port} for name, port in ports.items()]


def _is_master(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> bool:
    leader = job.leader
    if leader is not None:
        return replica.type == leader.type
    return job.framework is TENSORFLOW and replica.type == "Worker" and index == 0
