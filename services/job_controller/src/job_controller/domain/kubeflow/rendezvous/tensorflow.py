"""TensorFlow: ``TF_CONFIG``, the whole cluster and one's own place in it."""

import json

from job_controller.domain.kubeflow.rendezvous.variables import variable
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob, member_name
from kube import Manifest


def tensorflow_env(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> list[Manifest]:
    """Nothing for a job of one pod: it is not distributed."""
    if job.total == 1:
        return []
    task: Manifest = {"type": replica.word, "index": index}
    if job.spec.get("enableDynamicWorker") and replica.type in ("Worker", "PS"):
        # TensorFlow reads `cluster`; the training operator writes `sparseCluster`, which its users' programs read.
        seen = _sparse_cluster(job, replica, index)
        config: Manifest = {"cluster": seen, "sparseCluster": seen, "task": task}
    else:
        config = {"cluster": _cluster(job), "task": task, "environment": "cloud"}
    return [variable("TF_CONFIG", json.dumps(config, separators=(",", ":")))]


def _cluster(job: ReplicatedJob) -> dict[str, list[str]]:
    """Host and port of every pod by type; evaluators stand outside the cluster."""
    members = sorted(job.replicas, key=lambda replica: replica.word)
    return {replica.word: _hosts(job, replica) for replica in members if replica.type != "Evaluator"}


def _sparse_cluster(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> Manifest:
    """What a pod sees where workers come and go: a worker itself and all servers, a server only itself."""
    if replica.type == "PS":
        return {"ps": [_host(job, replica, index)]}
    servers = job.of_type("PS")
    return {"ps": _hosts(job, servers) if servers else [], "worker": {str(index): _host(job, replica, index)}}


def _hosts(job: ReplicatedJob, replica: ReplicaSpec) -> list[str]:
    return [_host(job, replica, index) for index in range(replica.count)]


def _host(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> str:
    return f"{member_name(job.name, replica.type, index)}.{job.namespace}.svc:{job.port_of(replica)}"
