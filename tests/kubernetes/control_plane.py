"""A control plane of Kubernetes on this machine: etcd, an API server, its controllers, and nodes that kwok plays."""

import json
import secrets
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml
from kwok_stages import STAGES
from lab_certificates import certificates
from lab_programs import programs

from bus.server import free_ports

READY_SECONDS = 90.0
AUDIT_LOG = "audit.log"
AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [{"group": "batch.volcano.sh"}],
            "namespaces": ["lab-a"],
        },
        {"level": "None"},
    ],
}
"""What the API server's audit log tells: what is made in one namespace, and nothing that would take time."""


@dataclass(slots=True)
class ControlPlane:
    """A running control plane. ``kubeconfig`` names an administrator of it."""

    folder: Path
    address: str
    token: str
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _commands: dict[str, list[str]] = field(default_factory=dict)

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def start(self, name: str, command: list[str]) -> None:
        """Start one of its programs, or start it again."""
        self._commands[name] = command
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        """Kill one of its programs as a crash would."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def start_again(self, name: str) -> None:
        """Start a program that was killed, as it was."""
        self.start(name, self._commands[name])

    def request(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """One request; the parsed answer. Raises urllib.error.HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        asked = urllib.request.Request(self.address + path, data, headers, method=method)
        with self.answered(asked, 30) as answer:
            return json.loads(answer.read() or b"{}")

    def lines(self, path: str, seconds: float) -> Iterator[bytes]:
        """What a watch of ``path`` tells, line by line, until the server ends it. Raises OSError when it is cut."""
        asked = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {self.token}"})
        with self.answered(asked, seconds) as answer:
            yield from answer

    @contextmanager
    def answered(self, asked: urllib.request.Request, seconds: float) -> Iterator[Any]:
        """The answer to a request while it is read. Raises OSError, also when it breaks off in the midst of its body."""
        try:
            with urllib.request.urlopen(asked, context=self._tls(), timeout=seconds) as answer:
                yield answer
        except HTTPError as error:
            error.add_note(f"{asked.get_method()} {asked.full_url}: {error.read().decode(errors='replace')[:2000]}")
            raise
        except HTTPException as error:
            raise ConnectionError(f"{asked.full_url}: {type(error).__name__}: {error}") from error

    def wait_ready(self) -> None:
        """Wait until the API server answers."""
        until = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.request("GET", "/api/v1/namespaces/default")
                if self._is_healthy():
                    return
                raise ValueError("/healthz does not say ok")
            except (OSError, ValueError) as error:
                if time.monotonic() > until:
                    raise TimeoutError(f"the API server did not start: {error}") from error
                time.sleep(0.1)

    def _is_healthy(self) -> bool:
        asked = urllib.request.Request(f"{self.address}/healthz", headers={"Authorization": f"Bearer {self.token}"})
        with self.answered(asked, 30) as answer:
            return bool(answer.read() == b"ok")

    def stop(self) -> None:
        """End all of it at once. Its state is not used again, and an API server that is asked to stop waits for its watchers."""
        for name in reversed(list(self.processes)):
            self.kill(name)

    def _tls(self) -> Any:
        import ssl

        return ssl.create_default_context(cafile=str(self.folder / "ca.crt"))


@contextmanager
def control_plane(
    folder: Path, *, kwok: bool = True, controllers: bool = False, api_flags: Sequence[str] = ()
) -> Iterator[ControlPlane]:
    """A control plane with its state below ``folder``, its API server started with ``api_flags`` besides the usual ones.

    With ``kwok`` its nodes are played by kwok; the ``controllers`` of Kubernetes run with it, or without.
    Raises NoLab where its programs are not there.
    """
    controllers = controllers or kwok
    more = (*(("kube-controller-manager",) if controllers else ()), *(("kwok",) if kwok else ()))
    names = ("etcd", "kube-apiserver", *more)
    found = programs(*names)
    folder.mkdir(parents=True, exist_ok=True)
    client, peer, port = free_ports(3)
    plane = ControlPlane(folder, f"https://127.0.0.1:{port}", secrets.token_urlsafe(16))
    certificates(folder)
    (folder / "tokens.csv").write_text(f'{plane.token},admin,admin,"system:masters"\n')
    write_kubeconfig(plane)
    (folder / "audit.yaml").write_text(yaml.safe_dump(AUDITED))
    etcd_url = f"http://127.0.0.1:{client}"
    plane.start("etcd", etcd_command(found["etcd"], folder, etcd_url, f"http://127.0.0.1:{peer}"))
    try:
        plane.start("kube-apiserver", [*_api_server(found["kube-apiserver"], folder, etcd_url, port), *api_flags])
        plane.wait_ready()
        if kwok:
            (folder / "kwok.yaml").write_text(yaml.safe_dump_all(STAGES))
            plane.start("kwok", _kwok(found["kwok"], folder))
        if controllers:
            plane.start(
                "kube-controller-manager", controllers_command(found["kube-controller-manager"], folder, CONTROLLERS)
            )
        yield plane
    finally:
        plane.stop()


def etcd_command(program: Path, folder: Path, client: str, peer: str) -> list[str]:
    """etcd with its URLs for clients and for peers."""
    return [
        str(program),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _api_server(program: Path, folder: Path, etcd: str, port: int) -> list[str]:
    return [
        str(program),
        f"--etcd-servers={etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-key-file={folder / 'server.key'}",
        f"--service-account-signing-key-file={folder / 'server.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={folder / 'audit.yaml'}",
        f"--audit-log-path={folder / AUDIT_LOG}",
        f"--cert-dir={folder / 'certificates'}",
    ]


def _kwok(program: Path, folder: Path) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--config={folder / 'kwok.yaml'}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=0",
        "--server-address=",
    ]


CONTROLLERS = (
    "job-controller",
    "cronjob-controller",
    "replicaset-controller",
    "deployment-controller",
    "statefulset-controller",
    "daemonset-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "persistentvolume-binder-controller",
    "resourceclaim-controller",
)


def controllers_command(program: Path, folder: Path, names: Sequence[str]) -> list[str]:
    """A controller manager that runs these controllers alone."""
    return [
        str(program),
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--controllers={','.join(names)}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
    ]


def write_kubeconfig(plane: ControlPlane) -> None:
    """Write the file ``plane.kubeconfig``."""
    cluster = {"server": plane.address, "certificate-authority": str(plane.folder / "ca.crt")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": plane.token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
    }
    plane.kubeconfig.write_text(yaml.safe_dump(content))
    plane.kubeconfig.chmod(0o600)


def node(
    name: str, *, cpu: str = "32", memory: str = "128Gi", gpus: int = 0, labels: dict[str, str] | None = None
) -> Any:
    """A node with its status; without a node controller it stays ready."""
    room = {"cpu": cpu, "memory": memory, "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
