"""The plugins that tell a pod its place among its peers: env, pytorch, tensorflow, mpi, hcclrank."""

import json

from job_controller.domain.volcano.plugins.injection import NOTHING, Injection, Plugin, Site, variable
from job_controller.domain.volcano.spec import Task
from kube import Manifest

RANK_INDEX = "hccl/rankIndex"
TENSORFLOW_ROLES = ("ps", "worker", "chief", "evaluator")


def _env(site: Site, task: Task, index: int) -> Injection:
    env = (variable("VK_TASK_INDEX", str(index)), variable("VC_TASK_INDEX", str(index)))
    return Injection(env=env, init_env=env)


def _port(site: Site, default: str, name: str) -> Manifest:
    return {"name": name, "containerPort": int(site.flag("port", default))}


def _task(site: Site, flag: str) -> Task | None:
    return site.spec.task(site.flag(flag, flag))


def _replicas(task: Task | None) -> int:
    return task.replicas if task else 0


def _pytorch_task(site: Site, task: Task) -> Injection:
    master, worker = _task(site, "master"), _task(site, "worker")
    if master is None or master.replicas == 0 or task not in (master, worker):
        return NOTHING
    port = _port(site, "23456", "pytorchjob-port")
    address = site.host(master, 0)
    env = (
        variable("MASTER_ADDR", address),
        variable("MASTER_PORT", str(port["containerPort"])),
        variable("WORLD_SIZE", str(master.replicas + _replicas(worker))),
    )
    waits = task is worker and site.switch("wait-master-enabled", False)
    return Injection(
        env=env,
        ports=(port,),
        init_containers=(_wait_for_master(site, address, port["containerPort"]),) if waits else (),
    )


def _wait_for_master(site: Site, address: str, port: int) -> Manifest:
    """An init container that ends when the master can be reached, and fails when that takes too long."""
    seconds = int(site.flag("wait-master-timeout", "300"))
    script = (
        f"end=$(( $(date +%s) + {seconds} )); until nc -z -w 1 {address} {port}; do "
        f'if [ "$(date +%s)" -ge "$end" ]; then echo "{address}:{port} not reached in {seconds} s" >&2; exit 1; fi; '
        "sleep 1; done"
    )
    image = site.flag("wait-master-image", "busybox:1.36.1")
    return {"name": "wait-for-master", "image": image, "command": ["sh", "-c", script]}


def _pytorch_pod(site: Site, task: Task, index: int) -> Injection:
    master, worker = _task(site, "master"), _task(site, "worker")
    if master is None or master.replicas == 0 or task not in (master, worker):
        return NOTHING
    rank = index if task is master else master.replicas + index
    return Injection(env=(variable("RANK", str(rank)),))


def _tensorflow(site: Site, task: Task, index: int) -> Injection:
    """TF_CONFIG; a job of one pod needs none."""
    if site.spec.replicas <= 1:
        return NOTHING
    roles = {site.flag(role, role): role for role in TENSORFLOW_ROLES}
    port = site.flag("port", "2222")
    tasks = [(roles[item.name], item) for item in site.spec.tasks if item.name in roles]
    cluster = {role: [f"{host}:{port}" for host in site.hosts(item)] for role, item in tasks}
    if task.name not in roles:
        return NOTHING
    config = {"cluster": cluster, "task": {"type": roles[task.name], "index": index}}
    return Injection(env=(variable("TF_CONFIG", json.dumps(config, separators=(",", ":"))),))


def _mpi(site: Site, task: Task) -> Injection:
    """The master knows its workers; all of them open the port of sshd."""
    master, worker = _task(site, "master"), _task(site, "worker")
    port = _port(site, "22", "mpijob-port")
    env = (variable("MPI_HOST", ",".join(site.hosts(worker))),) if task is master else ()
    return Injection(env=env, init_env=env, ports=(port,))


def _hcclrank(site: Site, task: Task, index: int) -> Injection:
    """The rank, from the pod's own RANK where it has one, else from its place."""
    for container in (*(task.pod_spec.get("containers") or ()), *(task.pod_spec.get("initContainers") or ())):
        for item in container.get("env") or ():
            if item.get("name") == "RANK" and item.get("value"):
                return Injection(annotations={RANK_INDEX: str(item["value"])})
    master, worker = _task(site, "master"), _task(site, "worker")
    if task not in (master, worker):
        return NOTHING
    rank = index if task is master else _replicas(master) + index
    return Injection(annotations={RANK_INDEX: str(rank)})


ENV = Plugin(for_pod=_env)
PYTORCH = Plugin(for_task=_pytorch_task, for_pod=_pytorch_pod)
TENSORFLOW = Plugin(for_pod=_tensorflow)
MPI = Plugin(for_task=_mpi)
HCCLRANK = Plugin(for_pod=_hcclrank)
