"""The plugin svc: the pods of a job find each other by name, and know each other's names."""

from job_controller.domain.volcano.ownership import owned
from job_controller.domain.volcano.plugins.injection import Injection, Plugin, Site
from job_controller.domain.volcano.pods_labels import JOB_NAME, JOB_NAMESPACE
from job_controller.domain.volcano.spec import Task
from kube import Manifest

HOSTS_PATH = "/etc/volcano"


def _objects(site: Site) -> list[Manifest]:
    hosts = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(site.job, _map_name(site)),
        "data": host_data(site),
    }
    policy = [] if site.switch("disable-network-policy", False) else [_network_policy(site)]
    return [hosts, _service(site), *policy]


def host_data(site: Site) -> dict[str, str]:
    """The lists of hosts: ``<task>.host`` by line, ``VC_<TASK>_HOSTS`` by comma, ``VC_<TASK>_NUM``."""
    data: dict[str, str] = {}
    for task in site.spec.tasks:
        hosts, name = site.hosts(task), _plain(task)
        data[f"{name}.host"] = "\n".join(hosts)
        data[f"VC_{name.upper()}_HOSTS"] = ",".join(hosts)
        data[f"VC_{name.upper()}_NUM"] = str(task.replicas)
    return data


def _for_task(site: Site, task: Task) -> Injection:
    volume = _map_name(site)
    env = tuple(_from_map(site, name) for other in site.spec.tasks for name in _variables(other))
    if not site.switch("inject-hosts-env", True):
        env = ()
    return Injection(
        env=env,
        init_env=env,
        volumes=({"name": volume, "configMap": {"name": volume}},),
        mounts=({"name": volume, "mountPath": HOSTS_PATH},),
        fields={"subdomain": site.job.name},
    )


def _for_pod(site: Site, task: Task, index: int) -> Injection:
    return Injection(fields={"hostname": f"{site.job.name}-{task.name}-{index}"})


def _service(site: Site) -> Manifest:
    spec: Manifest = {
        "clusterIP": "None",
        "selector": _selector(site),
        "publishNotReadyAddresses": site.switch("publish-not-ready-addresses", False),
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": owned(site.job, site.job.name), "spec": spec}


def _network_policy(site: Site) -> Manifest:
    """Only pods of the job may talk to pods of the job."""
    pods = {"matchLabels": _selector(site)}
    spec: Manifest = {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": pods}]}]}
    metadata = owned(site.job, site.job.name)
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _selector(site: Site) -> dict[str, str]:
    return {JOB_NAME: site.job.name, JOB_NAMESPACE: site.job.namespace}


def _from_map(site: Site, name: str) -> Manifest:
    return {"name": name, "valueFrom": {"configMapKeyRef": {"name": _map_name(site), "key": name}}}


def _variables(task: Task) -> tuple[str, str]:
    return f"VC_{_plain(task).upper()}_HOSTS", f"VC_{_plain(task).upper()}_NUM"


def _plain(task: Task) -> str:
    return task.name.replace("-", "_")


def _map_name(site: Site) -> str:
    return f"{site.job.name}-svc"


SVC = Plugin(_objects, _for_task, _for_pod)
