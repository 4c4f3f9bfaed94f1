"""The services as processes on a bus where each has a user of its own, with the permissions of `deploy/topology`."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from bus.permissions import Permissions, conducts, permissions
from bus.server import binary, free_ports
from testing.background import process

TOPOLOGY = Path(__file__).resolve().parents[2] / "deploy" / "topology" / "permissions.yaml"


def of_services() -> dict[str, Permissions]:
    """What the user of each service is permitted."""
    written = yaml.safe_load(TOPOLOGY.read_text())["services"]
    return {service: permissions(service, conduct) for service, conduct in conducts(written).items()}


@contextmanager
def server(folder: Path, users: Mapping[str, Permissions]) -> Iterator[str]:
    """A server with these users, whose password is their name with ``-secret``; its address."""
    (port,) = free_ports(1)
    file = folder / "nats.conf"
    file.write_text(
        f'server_name: tidegate\nlisten: "127.0.0.1:{port}"\nmax_payload: 8MB\n'
        f'jetstream {{ store_dir: "{folder / "jetstream"}" }}\n'
        f"authorization {{ users: {json.dumps([_user(name, one) for name, one in users.items()])} }}\n"
    )
    with process([binary(), "-c", str(file)], folder / "nats.log"):
        yield f"nats://127.0.0.1:{port}"


def _user(name: str, permitted: Permissions) -> dict[str, Any]:
    return {
        "user": name,
        "password": password(name),
        "permissions": {
            "publish": {"allow": list(permitted.publish)},
            "subscribe": {"allow": list(permitted.subscribe)},
            **({"allow_responses": True} if permitted.responds else {}),
        },
    }


def password(name: str) -> str:
    return f"{name}-secret"


@contextmanager
def services(folder: Path, url: str, flags: Mapping[str, Sequence[str]]) -> Iterator[dict[str, int]]:
    """The services that ``flags`` names, with its flags for each; the ports where they answer."""
    ports = dict(zip(flags, free_ports(len(flags)), strict=True))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    with ExitStack() as running:
        for service, own in flags.items():
            credentials = folder / "credentials" / service
            credentials.mkdir(parents=True)
            (credentials / "username").write_text(service)
            (credentials / "password").write_text(password(service))
            words = ["--nats-url", url, "--nats-credentials", str(credentials), "--data-dir", str(folder / "data")]
            command = [sys.executable, "-m", f"{service}.main", *words, "--health-port", str(ports[service]), *own]
            running.enter_context(process(command, folder / f"{service}.log", kept))
        yield ports
