"""The objects around an MPIJob's pods: the service that names them, the list of hosts, the keys to log in with."""

from collections.abc import Sequence

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.members import headless_service_spec
from job_controller.domain.kubeflow.mpi.settings import MpiSettings, host_of, launcher_name, worker_names
from job_controller.domain.kubeflow.replica_specs import JOB_NAME, OPERATOR_NAME, ReplicatedJob
from kube import Manifest

# The cluster side makes the keys: their values never pass through a decision.
GENERATE = "tidegate.dev/generate"


def job_labels(job: ReplicatedJob) -> dict[str, str]:
    """The labels that all pods of the job have in common."""
    return {OPERATOR_NAME: "mpi-operator", JOB_NAME: job.name}


def service_manifest(job: ReplicatedJob) -> Manifest:
    """The headless service named as the job, under which every pod has its name."""
    labels = job_labels(job)
    metadata = owned_metadata(job.source, job.name, labels, {})
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": headless_service_spec(labels, [])}


def secret_manifest(job: ReplicatedJob) -> Manifest:
    """The pair of keys, to be filled in by the cluster side."""
    metadata = owned_metadata(job.source, f"{job.name}-ssh", job_labels(job), {GENERATE: "ssh-keypair"})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/ssh-auth"}


def config_manifest(job: ReplicatedJob, data: dict[str, str]) -> Manifest:
    metadata = owned_metadata(job.source, f"{job.name}-config", job_labels(job), {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def config_data(job: ReplicatedJob, settings: MpiSettings, running: Sequence[str]) -> dict[str, str]:
    """The list of hosts, and the script by which Horovod asks for the workers that run now (``running``)."""
    return {"hostfile": hostfile(job, settings), "discover_hosts.sh": _discovery(job, settings, running)}


def hostfile(job: ReplicatedJob, settings: MpiSettings) -> str:
    """One line per worker with its slots, in the implementation's own form; the launcher first when it works too."""
    pods = ([launcher_name(job)] if settings.launcher_works else []) + worker_names(job)
    form = "{} slots={}\n" if settings.implementation == "OpenMPI" else "{}:{}\n"
    return "".join(form.format(host_of(job, pod), settings.slots) for pod in pods)


def _discovery(job: ReplicatedJob, settings: MpiSettings, running: Sequence[str]) -> str:
    pods = ([launcher_name(job)] if settings.launcher_works else []) + list(running)
    return "#!/bin/sh\n" + "".join(f"echo {host_of(job, pod)}\n" for pod in pods)
