"""MPIJob v2beta1: one launcher, its workers, and how they speak to each other."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.kubeflow_job import REPLICA
from admission.domain.pod_template import check_template, default_template
from admission.domain.run_policy import MPI_OPERATOR, RUN_POLICY, check_run_policy, default_run_policy
from admission.domain.shapes import TEXT, TRUTH, WHOLE, Idle, MapOf, closed, one_of, pod_count, within
from admission.domain.world import Review
from kube import Manifest

MPI_JOB_SPEC = closed(
    slotsPerWorker=WHOLE,
    runLauncherAsWorker=TRUTH,
    sshAuthMountPath=TEXT,
    launcherCreationPolicy=TEXT,
    mpiImplementation=TEXT,
    mpiReplicaSpecs=MapOf(REPLICA),
    runPolicy=RUN_POLICY,
    cleanPodPolicy=TEXT,
    mainContainer=Idle(TEXT),
)
RESTART_POLICIES = {"Launcher": "OnFailure", "Worker": "Never"}
NAME_MAX = 63


def default_mpi_job(review: Review) -> None:
    """One slot a worker, Open MPI, a launcher that starts at once, in one replica."""
    spec = review.spec
    default_run_policy(spec)
    spec.setdefault("slotsPerWorker", 1)
    spec.setdefault("runLauncherAsWorker", False)
    spec.setdefault("sshAuthMountPath", "/root/.ssh")
    spec.setdefault("launcherCreationPolicy", "AtStartup")
    spec.setdefault("mpiImplementation", "OpenMPI")
    for name, replica in (spec.get("mpiReplicaSpecs") or {}).items():
        replica.setdefault("replicas", 1)
        replica.setdefault("restartPolicy", RESTART_POLICIES.get(name, "Never"))
        default_template(replica.get("template") or {})


def check_mpi_job(review: Review) -> Iterable[FieldError]:
    """Exactly one launcher, known roles, pods that end."""
    spec = review.spec
    replicas = spec.get("mpiReplicaSpecs") or {}
    if "Launcher" not in replicas:
        yield FieldError("spec.mpiReplicaSpecs.Launcher", None, "is required; an MPI job has one Launcher")
    for name, replica in replicas.items():
        yield from _check_replica(f"spec.mpiReplicaSpecs.{name}", review.key.name, name, replica)
    yield from within("spec.slotsPerWorker", spec["slotsPerWorker"], 1)
    policies, implementations = ("AtStartup", "WaitForWorkersReady"), ("OpenMPI", "Intel", "MPICH")
    yield from one_of("spec.launcherCreationPolicy", spec["launcherCreationPolicy"], policies)
    yield from one_of("spec.mpiImplementation", spec["mpiImplementation"], implementations)
    if not spec["sshAuthMountPath"]:
        yield FieldError("spec.sshAuthMountPath", None, "is required; say where the ssh keys are mounted")
    yield from check_run_policy(review, MPI_OPERATOR)


def _check_replica(path: str, job: str, name: str, replica: Manifest) -> Iterable[FieldError]:
    if name not in RESTART_POLICIES:
        yield FieldError(path, name, f"MPIJob has no replica type {name}; use {', '.join(RESTART_POLICIES)}")
    count = replica["replicas"]
    if name == "Launcher" and count != 1:
        yield FieldError(f"{path}.replicas", count, "there is exactly one Launcher; set it to 1")
    if name == "Worker":
        yield from pod_count(f"{path}.replicas", count, 1)
        last = f"{job}-worker-{max(count - 1, 0)}"
        if len(last) > NAME_MAX:
            yield FieldError("metadata.name", job, f"its pod {last} would have a name of over {NAME_MAX}; shorten it")
    yield from one_of(f"{path}.restartPolicy", replica["restartPolicy"], ("Never", "OnFailure"))
    yield from check_template(f"{path}.template", replica.get("template"))
