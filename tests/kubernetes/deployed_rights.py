"""The services as processes, with the accounts, roles, users of the bus and passwords that a Helm release made for them."""

import base64
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml
from cluster_tools import eventually
from control_plane import ControlPlane
from helm_tools import NAMESPACE, Manifest

from bus.server import binary, free_port, free_ports
from testing.background import process
from tidegate.client import Denied, Endpoint, SyncClient

INVENTORY = Path(__file__).resolve().parents[2] / "examples" / "8-cpus.inventory"
Right = tuple[str, str, str]
"""Verb, API group, resource with its subresource."""

AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]},
        {"level": "None"},
    ],
}
"""Only what our accounts ask for."""


def audit_flags(folder: Path) -> list[str]:
    """The flags of an API server that writes down what our accounts ask for, and guards owners as some clusters do."""
    policy = folder / "audit.yaml"
    policy.write_text(yaml.safe_dump(AUDIT))
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ]


def asked(folder: Path) -> tuple[dict[str, set[Right]], list[str]]:
    """What each account asked for and got, and what it was refused."""
    got: dict[str, set[Right]] = defaultdict(set)
    forbidden: list[str] = []
    for line in (folder / "audit.log").read_text().splitlines():
        event = json.loads(line)
        found = event.get("objectRef")
        if event["stage"] != "ResponseComplete" and not (
            event["verb"] == "watch" and event["stage"] == "ResponseStarted"
        ):
            continue
        account = event["user"]["username"].rpartition(":")[2]
        if found is None:
            continue
        resource = "/".join(filter(None, (found.get("resource", ""), found.get("subresource", ""))))
        right = (event["verb"], found.get("apiGroup", ""), resource)
        if event["responseStatus"]["code"] == 403:
            forbidden.append(f"{account}: {' '.join(right)} {found.get('name', '')}")
        else:
            got[account].add(right)
    return got, forbidden


def granted(rules: Sequence[Mapping[str, Sequence[str]]]) -> set[Right]:
    """What the rules of a role permit."""
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def kubeconfig_of(plane: ControlPlane, account: str, folder: Path) -> Path:
    """A kubeconfig with a token of the account, as its pods have one."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    token = plane.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["users"] = [{"name": "admin", "user": {"token": token["status"]["token"]}}]
    file = folder / f"{account}.kubeconfig"
    file.write_text(yaml.safe_dump(content))
    file.chmod(0o600)
    return file


def apply_hook_rights(plane: ControlPlane, objects: Sequence[Manifest]) -> None:
    """The account and the role of the Job that defines kinds, which Helm takes away when the Job is done."""
    collections = {
        "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
    for item in objects:
        if item["metadata"]["name"].endswith("-definitions") and item["kind"] in collections:
            plane.request("POST", collections[item["kind"]], item)


def asked_as(plane: ControlPlane, account: str, address: str) -> str:
    """What the API says to an account of the namespace ``default`` that asks for pods; its certificate is the release's."""
    path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
    token = plane.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    authority = secret(plane, "tidegate-admission-tls")["ca.crt"].encode()
    client = SyncClient(Endpoint(address, token["status"]["token"], authority), timeout_seconds=20.0)
    try:
        return f"{len(client.list('pods', 'default'))} pods"
    except Denied as error:
        return str(error)
    finally:
        client.close()


def secret(plane: ControlPlane, name: str) -> dict[str, str]:
    """The values of a Secret."""
    data = plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}")["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


@contextmanager
def deployed_bus(plane: ControlPlane, folder: Path) -> Iterator[str]:
    """A server with the configuration of the release, but for its ports and folder; its address."""
    client, monitor = free_ports(2)
    text = secret(plane, "tidegate-nats-config")["nats.conf"]
    for old, new in (
        ("0.0.0.0:4222", f"127.0.0.1:{client}"),
        ("0.0.0.0:8222", f"127.0.0.1:{monitor}"),
        ("/data/jetstream", str(folder / "jetstream")),
    ):
        assert old in text
        text = text.replace(old, new)
    file = folder / "nats.conf"
    file.write_text(text)
    with process([binary(), "-c", str(file)], folder / "nats.log", {**os.environ, "POD_NAME": "tidegate-nats-0"}):
        yield f"nats://127.0.0.1:{client}"


def agent_identity(plane: ControlPlane, folder: Path, node: str) -> Path:
    """The file that a kubelet writes for the agent's pod on ``node``, for which such a pod is made."""
    name, account = f"agent-on-{node}", "tidegate-node-agent"
    spec = {
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "nodeName": node,
        "containers": [{"name": "agent", "image": "agent"}],
    }
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    try:
        pod = plane.request("GET", f"{pods}/{name}")
    except OSError:
        pod = plane.request("POST", pods, {"metadata": {"name": name}, "spec": spec})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
    wanted = {"audiences": ["tidegate"], "boundObjectRef": bound}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}
    file = folder / f"{name}.token"
    file.write_text(plane.request("POST", path, body)["status"]["token"])
    return file


AGENTS = f"system:serviceaccount:{NAMESPACE}:tidegate-node-agent"
NOWHERE = '{"prometheus": "http://127.0.0.1:1", "externalRules": [{"seriesQuery": "queue"}]}'
"""A source of samples that is not there."""
FLAGS: dict[str, tuple[str, ...]] = {
    "cluster_gateway": ("--driver", "kubernetes", "--agent-account", AGENTS),
    "admission": (),
    "job_controller": (),
    "queue_manager": (),
    "gang_scheduler": ("--scheduler-names", "tidegate,volcano,koord-scheduler"),
    "descheduler": (),
    "slo_controller": (),
    "inference_autoscaler": ("--horizontal", "false", "--sampling", NOWHERE),
    "inference_gateway": ("--gateway-port", str(free_port())),
    "node_agent": ("--kubelet", "true", "--node", "n0", "--usage-interval", "1s", "--inventory", str(INVENTORY)),
}


@contextmanager
def deployed_services(
    plane: ControlPlane, folder: Path, more: Mapping[str, Sequence[str]] | None = None
) -> Iterator[str]:
    """All services on the plane, as the release's pods would run, some with ``more`` flags; their logs are in ``folder``. The
    address of the API.
    """
    webhooks, api = free_ports(2)
    # Those who ran before in this folder were ready, too.
    files = [folder / f"{service}.log" for service in ("admission", "cluster_gateway")]
    logs = {log: len(log.read_text()) if log.exists() else 0 for log in files}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    with ExitStack() as running:
        url = running.enter_context(deployed_bus(plane, folder))
        for service, flags in FLAGS.items():
            dashed = service.replace("_", "-")
            credentials = folder / "credentials" / service
            credentials.mkdir(parents=True, exist_ok=True)
            for name, value in secret(plane, f"tidegate-nats-{dashed}").items():
                (credentials / name).write_text(value)
            words = ["--nats-url", url, "--nats-credentials", str(credentials), "--data-dir", str(folder / "data")]
            if service in ("cluster_gateway", "admission"):
                words += ["--kubeconfig", str(kubeconfig_of(plane, f"tidegate-{dashed}", folder))]
            if service == "admission":
                words += ["--webhook-url", f"https://127.0.0.1:{webhooks}", "--webhook-port", str(webhooks)]
                words += ["--access", "cluster", "--api-port", str(api)]
            if service == "node_agent":
                words += ["--identity", str(agent_identity(plane, folder, "n0"))]
            command = [sys.executable, "-m", f"{service}.main", *words, *flags, *(more or {}).get(service, ())]
            running.enter_context(process(command, folder / f"{service}.log", kept))
        for log, before in logs.items():
            eventually(lambda log=log, before=before: '"ready"' in log.read_text()[before:], 150)
        yield f"127.0.0.1:{api}"
