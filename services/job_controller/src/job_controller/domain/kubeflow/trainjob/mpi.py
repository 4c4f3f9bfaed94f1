"""The MPI policy of a runtime: the list of hosts, the keys, and how a launcher finds both. Open MPI only, as upstream."""

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.mpi.surroundings import GENERATE
from job_controller.domain.kubeflow.rendezvous.variables import variables, with_variables
from job_controller.domain.kubeflow.trainjob.runtime import LAUNCHER, NODE, Training
from kube import Manifest

HOSTS_PATH = "/etc/mpi"
SSH_VOLUME = "mpi-ssh-auth"
HOSTS_VOLUME = "mpi-hostfile"
KEY_FILES = {"id_rsa": "ssh-privatekey", "id_rsa.pub": "ssh-publickey", "authorized_keys": "ssh-publickey"}


def worker_nodes(training: Training) -> int:
    """How many pods of the replicated job ``node``: one fewer where the launcher is a node itself."""
    return max(training.nodes - 1, 1) if training.launcher_is_node else training.nodes


def slots(training: Training) -> int:
    """Processes per node: as given, or one per GPU."""
    given = training.processes("mpi")
    return int(given) if given not in (None, 1) or training.trainer.get("numProcPerNode") else max(training.gpus(), 1)


def hosts_manifest(training: Training) -> Manifest:
    """The ConfigMap with the list of hosts."""
    job = training.job.name
    nodes = [f"{job}-{NODE}-0-{index}.{job}" for index in range(worker_nodes(training))]
    hosts = ([f"{job}-{LAUNCHER}-0-0.{job}"] if training.launcher_is_node else []) + nodes
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(training.job, hosts_name(training), {}, {}),
        "data": {"hostfile": "".join(f"{host} slots={slots(training)}\n" for host in hosts)},
    }


def keys_manifest(training: Training) -> Manifest:
    """The Secret with the keys to log in with, to be filled in by the cluster side."""
    metadata = owned_metadata(training.job, keys_name(training), {}, {GENERATE: "ssh-keypair"})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/ssh-auth"}


def hosts_name(training: Training) -> str:
    return f"{training.job.name}-mpi-hostfile"


def keys_name(training: Training) -> str:
    return f"{training.job.name}-mpi-ssh-auth"


def with_mpi(training: Training, name: str, spec: Manifest) -> Manifest:
    """The pod spec of the replicated job ``name`` with keys, and for the launcher with hosts and environment."""
    if name not in (NODE, LAUNCHER):
        return spec
    policy = training.policy.get("mpi") or {}
    items = [{"key": key, "path": path} for path, key in KEY_FILES.items()]
    secret = {"name": SSH_VOLUME, "secret": {"secretName": keys_name(training), "defaultMode": 0o640, "items": items}}
    volumes: list[Manifest] = [*(spec.get("volumes") or []), secret]
    mounts = [{"name": SSH_VOLUME, "mountPath": policy.get("sshAuthMountPath") or "/root/.ssh"}]
    env: list[Manifest] = []
    if name == LAUNCHER:
        hosts = [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
        volumes.append({"name": HOSTS_VOLUME, "configMap": {"name": hosts_name(training), "items": hosts}})
        mounts.append({"name": HOSTS_VOLUME, "mountPath": HOSTS_PATH})
        env = _launcher_env(training)
    containers = [_equipped(one, mounts, env) for one in spec.get("containers") or []]
    return {**spec, "volumes": volumes, "containers": containers}


def _launcher_env(training: Training) -> list[Manifest]:
    return variables(
        {
            "OMPI_MCA_orte_default_hostfile": f"{HOSTS_PATH}/hostfile",
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_set_default_slots": slots(training),
            "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        }
    )


def _equipped(container: Manifest, mounts: list[Manifest], env: list[Manifest]) -> Manifest:
    if container.get("name") not in (NODE, LAUNCHER):
        return container
    return with_variables({**container, "volumeMounts": [*(container.get("volumeMounts") or []), *mounts]}, env)
