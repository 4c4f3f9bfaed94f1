"""PyTorch: torchrun's ``PET_`` variables, and those of ``init_process_group`` where there is a master."""

from job_controller.domain.kubeflow.rendezvous.variables import variables
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob, member_name
from kube import Manifest


def pytorch_env(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> list[Manifest]:
    values: dict[str, object] = {"PYTHONUNBUFFERED": 1}
    if job.leader is not None:
        values |= _master_values(job, job.leader, index if replica.type == "Master" else index + 1)
    elastic = job.elastic
    values |= {"PET_NNODES": job.total} if elastic is None else _elastic_values(job, elastic)
    return variables(values | {"PET_NPROC_PER_NODE": processes_per_node(job)})


def processes_per_node(job: ReplicatedJob) -> str:
    """``auto``, ``cpu``, ``gpu`` or a number; the elastic policy's own field is the older place for it."""
    policy = job.spec.get("elasticPolicy") or {}
    given = job.spec.get("nprocPerNode")
    return str(given if given is not None else policy.get("nProcPerNode") or "auto")


def _master_values(job: ReplicatedJob, master: ReplicaSpec, rank: int) -> dict[str, object]:
    processes = processes_per_node(job)
    address, port = member_name(job.name, "Master", 0), job.port_of(master)
    return {
        "MASTER_PORT": port,
        "PET_MASTER_PORT": port,
        "MASTER_ADDR": address,
        "PET_MASTER_ADDR": address,
        "WORLD_SIZE": job.total * (int(processes) if processes.isdigit() else 1),
        "RANK": rank,
        "PET_NODE_RANK": rank,
    }


def _elastic_values(job: ReplicatedJob, between: tuple[int, int]) -> dict[str, object]:
    policy = job.spec.get("elasticPolicy") or {}
    workers = job.of_type("Worker")
    host = policy.get("rdzvHost") or member_name(job.name, "Worker", 0)
    port = policy.get("rdzvPort") or (job.port_of(workers) if workers else job.framework.port)
    values: dict[str, object] = {
        "PET_RDZV_BACKEND": policy.get("rdzvBackend") or "c10d",
        "PET_RDZV_ENDPOINT": f"{host}:{port}",
        "PET_NNODES": f"{between[0]}:{between[1]}",
    }
    if policy.get("maxRestarts") is not None:
        values["PET_MAX_RESTARTS"] = policy["maxRestarts"]
    if policy.get("rdzvConf"):
        values["PET_RDZV_CONF"] = ",".join(f"{entry.get('key')}={entry.get('value')}" for entry in policy["rdzvConf"])
    if policy.get("rdzvId") is not None:
        values["PET_RDZV_ID"] = policy["rdzvId"]
    if policy.get("standalone"):
        values["PET_STANDALONE"] = ""
    return values
