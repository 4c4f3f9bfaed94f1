"""JAX: the first worker coordinates."""

from job_controller.domain.kubeflow.rendezvous.variables import variables
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob, member_name
from kube import Manifest


def jax_env(job: ReplicatedJob, replica: ReplicaSpec, index: int) -> list[Manifest]:
    return variables(
        {
            "PYTHONUNBUFFERED": 1,
            "COORDINATOR_PORT": job.port_of(replica),
            "COORDINATOR_ADDRESS": member_name(job.name, "Worker", 0),
            "NUM_PROCESSES": job.total,
            "PROCESS_ID": index,
        }
    )
