"""The environment that each framework's policy gives to the training nodes of a TrainJob."""

from job_controller.domain.kubeflow.rendezvous.variables import field_variable, variables
from job_controller.domain.kubeflow.trainjob.runtime import PORT, Training, cpus
from kube import Manifest

COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def training_env(training: Training) -> list[Manifest]:
    """The variables for the framework that the runtime's policy names; none for a plain or an MPI one."""
    if "torch" in training.policy:
        return _torch(training)
    if "jax" in training.policy:
        return _jax(training)
    return _xgboost(training) if "xgboost" in training.policy else []


def torch_processes(training: Training) -> str:
    """Processes per node for torchrun.

    ``auto`` stays so where the node has a GPU, and becomes the number of CPUs where it has none; ``cpu`` is always their number.
    A node whose resources nobody gave is left to torchrun.
    """
    given = training.processes("torch")
    word = "auto" if given is None else str(given)
    resources = training.resources()
    if word not in ("auto", "cpu") or not resources:
        return word
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if word == "auto" and any("gpu" in name.lower() for name in (*limits, *requests)):
        return word
    return str(cpus(limits if "cpu" in limits else requests))


def _torch(training: Training) -> list[Manifest]:
    return [
        *variables({"PET_NNODES": training.nodes, "PET_NPROC_PER_NODE": torch_processes(training)}),
        field_variable("PET_NODE_RANK", COMPLETION_INDEX),
        *variables({"PET_MASTER_ADDR": training.node_host, "PET_MASTER_PORT": PORT}),
    ]


def _jax(training: Training) -> list[Manifest]:
    return [
        *variables({"JAX_NUM_PROCESSES": training.nodes}),
        field_variable("JAX_PROCESS_ID", COMPLETION_INDEX),
        *variables({"JAX_COORDINATOR_ADDRESS": f"{training.node_host}:{PORT}"}),
    ]


def _xgboost(training: Training) -> list[Manifest]:
    workers = training.nodes * max(training.gpus(), 1)
    return [
        *variables({"DMLC_TRACKER_URI": training.node_host, "DMLC_TRACKER_PORT": PORT}),
        field_variable("DMLC_TASK_ID", COMPLETION_INDEX),
        *variables({"DMLC_NUM_WORKER": workers}),
    ]
