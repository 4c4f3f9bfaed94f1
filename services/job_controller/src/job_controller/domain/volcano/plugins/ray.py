"""The plugin ray: a head and its workers are started as one Ray cluster, and the head has a Service of its own."""

from job_controller.domain.volcano.census import TASK
from job_controller.domain.volcano.ownership import owned
from job_controller.domain.volcano.plugins.injection import NOTHING, Injection, Plugin, Site
from job_controller.domain.volcano.pods_labels import JOB_NAME, JOB_NAMESPACE
from job_controller.domain.volcano.spec import Task
from kube import Manifest

PORTS = (("gcs", "port", "6379"), ("dashboard", "dashboardPort", "8265"), ("client-server", "clientPort", "10001"))


def _objects(site: Site) -> list[Manifest]:
    head = site.spec.task(site.flag("head", "head"))
    if head is None:
        return []
    spec: Manifest = {
        "selector": {JOB_NAME: site.job.name, JOB_NAMESPACE: site.job.namespace, TASK: head.name},
        "ports": [{"name": name, "port": port, "targetPort": port} for name, port in _ports(site)],
    }
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": owned(site.job, f"{site.job.name}-head-svc"), "spec": spec}
    ]


def _for_task(site: Site, task: Task) -> Injection:
    head = site.spec.task(site.flag("head", "head"))
    worker = site.spec.task(site.flag("worker", "worker"))
    gcs, dashboard, client = (port for _, port in _ports(site))
    if task is head:
        command = f"ray start --head --block --dashboard-host=0.0.0.0 --port={gcs} --dashboard-port={dashboard}"
        command += f" --ray-client-server-port={client}"
        ports = tuple({"name": name, "containerPort": port} for name, port in _ports(site))
        return Injection(ports=ports, commands={_container(site, task, "headContainer"): ["sh", "-c", command]})
    if task is worker and head is not None:
        command = f"ray start --block --address={site.host(head, 0)}:{gcs}"
        return Injection(commands={_container(site, task, "workerContainer"): ["sh", "-c", command]})
    return NOTHING


def _ports(site: Site) -> list[tuple[str, int]]:
    return [(name, int(site.flag(flag, default))) for name, flag, default in PORTS]


def _container(site: Site, task: Task, flag: str) -> str:
    """The container that runs Ray: the one named, else the first."""
    names = [str(item.get("name")) for item in task.pod_spec.get("containers") or ()]
    named = site.flag(flag, "")
    return named if named in names or not names else names[0]


RAY = Plugin(_objects, _for_task)
