"""The workers of an MPIJob, and its launcher: a batch/v1 Job, whose pod is of the same gang."""

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.gang import carried_labels, gang_annotations
from job_controller.domain.kubeflow.mpi.settings import (
    CONFIG_PATH,
    ROOT_SSH_PATH,
    MpiSettings,
    launcher_name,
)
from job_controller.domain.kubeflow.mpi.surroundings import job_labels
from job_controller.domain.kubeflow.rendezvous.variables import variables, with_variables
from job_controller.domain.kubeflow.replica_specs import (
    JOB_ROLE,
    REPLICA_INDEX,
    REPLICA_TYPE,
    ReplicaSpec,
    ReplicatedJob,
    member_name,
)
from kube import Manifest

SSH_VOLUME = "ssh-auth"
CONFIG_VOLUME = "mpi-job-config"
RSH_ARGS = "-o ConnectionAttempts=10"


def worker_manifest(job: ReplicatedJob, settings: MpiSettings, workers: ReplicaSpec, index: int) -> Manifest:
    """The worker ``index``: it runs the SSH server unless its template says what to run."""
    name = member_name(job.name, "Worker", index)
    # Where the launcher works too it is rank 0, and the workers come behind it.
    rank = index + 1 if settings.launcher_works else index
    labels = {JOB_ROLE: "worker", REPLICA_TYPE: "worker", REPLICA_INDEX: str(rank)}
    metadata = _pod_metadata(job, workers, labels)
    containers = [dict(container) for container in workers.pod_spec.get("containers") or []]
    if containers and not containers[0].get("command") and not containers[0].get("args"):
        containers[0]["command"] = ["/usr/sbin/sshd", "-De"]
    env: dict[str, object] = {"K_MPI_JOB_ROLE": "worker"}
    spec = _networked(job, {**workers.pod_spec, "containers": containers}, name, env)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": owned_metadata(job.source, name, metadata["labels"], metadata["annotations"]),
        "spec": _with_keys(job, settings, {**spec, "restartPolicy": workers.restart_policy}),
    }


def launcher_manifest(job: ReplicatedJob, settings: MpiSettings, launcher: ReplicaSpec) -> Manifest:
    """The launcher's Job. How often it is tried again, and for how long, is the job's run policy."""
    name = launcher_name(job)
    labels = {JOB_ROLE: "launcher"} | ({REPLICA_INDEX: "0"} if settings.launcher_works else {})
    spec = _networked(job, launcher.pod_spec, name, _launcher_env(settings))
    spec = _with_hosts(job, _with_keys(job, settings, {**spec, "restartPolicy": launcher.restart_policy}))
    batch: Manifest = {
        "parallelism": 1,
        "completions": 1,
        "template": {"metadata": _pod_metadata(job, launcher, labels), "spec": spec},
    }
    if job.policy.backoff_limit is not None:
        batch["backoffLimit"] = job.policy.backoff_limit
    if job.policy.deadline_seconds is not None:
        batch["activeDeadlineSeconds"] = job.policy.deadline_seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": owned_metadata(job.source, name, {**job_labels(job), JOB_ROLE: "launcher"}, {}),
        "spec": batch,
    }


def _pod_metadata(job: ReplicatedJob, replica: ReplicaSpec, labels: dict[str, str]) -> Manifest:
    given = replica.template.get("metadata") or {}
    return {
        "labels": {**carried_labels(job.source), **(given.get("labels") or {}), **job_labels(job), **labels},
        "annotations": {**(given.get("annotations") or {}), **gang_annotations(job.name, replica.word)},
    }


def _launcher_env(settings: MpiSettings) -> dict[str, object]:
    hosts, slots = f"{CONFIG_PATH}/hostfile", settings.slots
    env: dict[str, object] = {"K_MPI_JOB_ROLE": "launcher"}
    if settings.implementation == "Intel":
        env |= {
            "I_MPI_HYDRA_HOST_FILE": hosts,
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": RSH_ARGS,
            "I_MPI_PERHOST": slots,
        }
    elif settings.implementation == "MPICH":
        env |= {"HYDRA_HOST_FILE": hosts, "HYDRA_LAUNCH_EXTRA_ARGS": RSH_ARGS}
    else:
        env |= {
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_default_hostfile": hosts,
            "OMPI_MCA_plm_rsh_args": RSH_ARGS,
            "OMPI_MCA_orte_set_default_slots": slots,
        }
    if not settings.launcher_works:
        # It only starts the others: no device is made visible to it, even where the image asks for all of them.
        env |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    return env


def _networked(job: ReplicatedJob, spec: Manifest, hostname: str, env: dict[str, object]) -> Manifest:
    """The pod's name in the job's service, and the environment of its first container."""
    first, *others = spec.get("containers") or [{}]
    containers = [with_variables(first, variables(env)), *others]
    return {**spec, "hostname": hostname, "subdomain": job.name, "containers": containers}


def _with_keys(job: ReplicatedJob, settings: MpiSettings, spec: Manifest) -> Manifest:
    files = {"id_rsa": "ssh-privatekey", "id_rsa.pub": "ssh-publickey", "authorized_keys": "ssh-publickey"}
    secret: Manifest = {
        "secretName": f"{job.name}-ssh",
        "items": [{"key": key, "path": path} for path, key in files.items()],
    }
    if settings.ssh_path == ROOT_SSH_PATH:
        secret["defaultMode"] = 0o600
    return _mounted(spec, {"name": SSH_VOLUME, "secret": secret}, settings.ssh_path)


def _with_hosts(job: ReplicatedJob, spec: Manifest) -> Manifest:
    items = [
        {"key": "hostfile", "path": "hostfile", "mode": 0o444},
        {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
    ]
    return _mounted(
        spec, {"name": CONFIG_VOLUME, "configMap": {"name": f"{job.name}-config", "items": items}}, CONFIG_PATH
    )


def _mounted(spec: Manifest, volume: Manifest, path: str) -> Manifest:
    """The spec with ``volume`` mounted at ``path`` in its first container."""
    first, *others = spec["containers"]
    mounts = [*(first.get("volumeMounts") or []), {"name": volume["name"], "mountPath": path}]
    volumes = [*(spec.get("volumes") or []), volume]
    return {**spec, "volumes": volumes, "containers": [{**first, "volumeMounts": mounts}, *others]}
