"""The plugin ssh: the pods of a job can log in to each other. The keys are made by the cluster side, never in here."""

from job_controller.domain.volcano.ownership import owned
from job_controller.domain.volcano.plugins.injection import Injection, Plugin, Site
from job_controller.domain.volcano.spec import Task
from kube import Manifest

GENERATE = "tidegate.dev/generate"
ROOT_PATH = "/root/.ssh"
PRIVATE_MODE, SHARED_MODE = 0o600, 0o644


def _objects(site: Site) -> list[Manifest]:
    given_private, given_public = site.flag("ssh-private-key", ""), site.flag("ssh-public-key", "")
    secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {"config": _config(site)}}
    if given_private and given_public:
        keys = {"id_rsa": given_private, "id_rsa.pub": given_public, "authorized_keys": given_public}
        return [{**secret, "metadata": owned(site.job, _name(site)), "stringData": {**secret["stringData"], **keys}}]
    return [{**secret, "metadata": owned(site.job, _name(site), annotations={GENERATE: "ssh-keypair"})}]


def _config(site: Site) -> str:
    """The ssh client's configuration: no questions, and a short name for every pod."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    port = site.flag("ssh-port", "22")
    for task in site.spec.tasks:
        for host in site.hosts(task):
            lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}"]
            lines += [f"  Port {port}"] if port != "22" else []
    return "\n".join(lines) + "\n"


def _for_task(site: Site, task: Task) -> Injection:
    path = "/" + site.flag("ssh-key-file-path", ROOT_PATH).strip("/")
    mode = PRIVATE_MODE if path == ROOT_PATH else SHARED_MODE
    names = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
    items = [{"key": name, "path": name} for name in names]
    volume = {"name": _name(site), "secret": {"secretName": _name(site), "items": items, "defaultMode": mode}}
    return Injection(volumes=(volume,), mounts=({"name": _name(site), "mountPath": path},))


def _name(site: Site) -> str:
    return f"{site.job.name}-ssh"


SSH = Plugin(_objects, _for_task)
