"""Each service with a user of its own on the bus: the system works, and nobody can do what is another's."""

import asyncio
import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from nats.aio.client import Client

from bus.server import free_port
from tidegate import subjects
from tidegate.client import Endpoint, NotFound, SyncClient, TimedOut, Unavailable, accepted

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def _beside(name: str) -> ModuleType:
    """The module beside this file; tests are imported by path, so it is, too."""
    known = f"tidegate_system_{name}"
    spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
    assert spec and spec.loader
    module = sys.modules[known] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


users = _beside("separate_users")
FLAGS = {
    "cluster_gateway": (),
    "admission": (),
    "job_controller": (),
    "queue_manager": (),
    "gang_scheduler": ("--load-aware", "false"),
    "descheduler": (),
    "slo_controller": (),
    "inference_autoscaler": (),
    "inference_gateway": ("--gateway-port", str(free_port())),
    "node_agent": ("--drain-on-stop", "true"),
}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "hello", "namespace": "default"},
    "spec": {
        "minAvailable": 2,
        "tasks": [
            {
                "name": "w",
                "replicas": 2,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {
                                "name": "main",
                                "image": "busybox",
                                "command": ["echo", "hello"],
                                "resources": {"requests": {"cpu": "10m"}},
                            }
                        ],
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("users")
    with users.server(folder, users.of_services()) as url:
        yield url, folder


@contextmanager
def client_of(folder: Path, port: int) -> Iterator[SyncClient]:
    token = yaml.safe_load((folder / "data" / "users.yaml").read_text())[0]["token"]
    client = SyncClient(Endpoint(f"127.0.0.1:{port}", token), timeout_seconds=10.0)
    try:
        yield client
    finally:
        client.close()


def phase_of(job: Any) -> str:
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def eventually(holds: Any, seconds: float = 110.0) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if said := holds():
                return said
        except (Unavailable, TimedOut, NotFound, FileNotFoundError):
            pass
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds:g} s")


def test_a_job_runs_to_its_end_and_no_service_is_refused_anything(bus: tuple[str, Path]) -> None:
    url, folder = bus
    with users.services(folder, url, FLAGS) as ports:
        eventually(lambda: (folder / "data" / "users.yaml").exists())
        with client_of(folder, ports["admission"]) as client:
            eventually(lambda: accepted(client.apply([JOB])) or True)
            eventually(lambda: phase_of(client.get("job", "hello")) == "Completed")
            pod = client.list("pods", "default")[0]["metadata"]["name"]
            assert b"".join(client.logs(pod)).strip() == b"hello"
            assert client.status()
    told = [line for line in (folder / "nats.log").read_text().splitlines() if "Violation" in line]
    assert told == []


@pytest.mark.parametrize(
    ("service", "subject"),
    [
        ("job_controller", f"tidegate.{subjects.FACTS}"),
        ("job_controller", "tidegate.decision.gang_scheduler"),
        ("node_agent", subjects.WRITE),
        ("node_agent", "tidegate.decision.job_controller"),
        ("admission", f"tidegate.{subjects.FACTS}"),
        ("admission", "$KV.TIDEGATE_LEASES.cluster_gateway"),
        ("queue_manager", "$JS.API.STREAM.PURGE.FACTS"),
        ("gang_scheduler", "$JS.API.STREAM.DELETE.DECISION_GANG_SCHEDULER"),
        ("gang_scheduler", "$O.TIDEGATE_SNAPSHOTS.M.fact"),
    ],
)
async def test_a_service_may_not_write_what_is_anothers(bus: tuple[str, Path], service: str, subject: str) -> None:
    refused = await refusals(bus[0], service, lambda client: client.publish(subject, b"mine"))
    assert any("publish" in text and subject.lower() in text for text in refused)


@pytest.mark.parametrize(
    ("service", "subject"),
    [
        ("job_controller", "_INBOX.>"),
        ("node_agent", "_INBOX.cluster_gateway.>"),
        ("queue_manager", subjects.WRITE),
        ("gang_scheduler", "tidegate.request.queue_manager.explain"),
        ("admission", "tidegate.>"),
    ],
)
async def test_a_service_hears_nothing_that_is_meant_for_another(
    bus: tuple[str, Path], service: str, subject: str
) -> None:
    refused = await refusals(bus[0], service, lambda client: client.subscribe(subject))
    assert any("subscription" in text and subject.lower() in text for text in refused)


async def test_nobody_gets_in_without_a_password(bus: tuple[str, Path]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(bus[0].rpartition(":")[2]))
    writer.write(b'CONNECT {"user": "admission", "password": "guessed"}\r\nPING\r\n')
    said = await reader.read()
    writer.close()
    assert b"Authorization Violation" in said


async def refusals(url: str, service: str, act: Any) -> list[str]:
    """What the server says against what ``service`` does."""
    said: list[str] = []

    async def hear(error: Exception) -> None:
        said.append(str(error).lower())

    client = Client()
    await client.connect(
        url, user=service, password=users.password(service), error_cb=hear, inbox_prefix=f"_INBOX.{service}"
    )
    await act(client)
    async with asyncio.timeout(30):
        while not any("violation" in text for text in said):
            await client.flush()
            await asyncio.sleep(0.01)
    await client.close()
    return said
