"""What an MPIJob says beyond its replicas, and the names that follow from the job's."""

from dataclasses import dataclass

from job_controller.domain.kubeflow.replica_specs import Framework, ReplicatedJob, member_name
from kube import Key

MPI = Framework(
    kind="MPIJob.kubeflow.org",
    specs_field="mpiReplicaSpecs",
    container="mpi",
    port_name="",
    port=0,
    restart_policy="Never",
    types=("Launcher", "Worker"),
    leaders=("Launcher",),
    leader_restart_policy="OnFailure",
)
CONFIG_PATH = "/etc/mpi"
ROOT_SSH_PATH = "/root/.ssh"


@dataclass(frozen=True, slots=True)
class MpiSettings:
    """``implementation`` is OpenMPI, Intel or MPICH; ``slots`` are processes per worker."""

    slots: int
    implementation: str
    launcher_works: bool
    launcher_waits: bool
    ssh_path: str


def read_settings(job: ReplicatedJob) -> MpiSettings:
    spec = job.spec
    slots = spec.get("slotsPerWorker")
    return MpiSettings(
        slots=1 if slots is None else int(slots),
        implementation=spec.get("mpiImplementation") or "OpenMPI",
        launcher_works=bool(spec.get("runLauncherAsWorker")),
        launcher_waits=spec.get("launcherCreationPolicy") == "WaitForWorkersReady",
        ssh_path=spec.get("sshAuthMountPath") or ROOT_SSH_PATH,
    )


def launcher_name(job: ReplicatedJob) -> str:
    return f"{job.name}-launcher"


def launcher_key(job: ReplicatedJob) -> Key:
    return Key("Job.batch", job.namespace, launcher_name(job))


def worker_names(job: ReplicatedJob) -> list[str]:
    return [member_name(job.name, "Worker", index) for index in range(job.count_of("Worker"))]


def host_of(job: ReplicatedJob, pod: str) -> str:
    """The name under which the job's service knows a pod."""
    return f"{pod}.{job.name}.{job.namespace}.svc"
