"""Gangs on a cluster while something goes wrong: made, watched, and looked at afterwards."""

import asyncio
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_tools import eventually
from control_plane import ControlPlane

from bus.jetstream import JetStreamBus
from kube import Decision
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2
from tidegate_cli.supervisor import endpoint

SERVICES = ("job_controller", "queue_manager", "gang_scheduler")
NAMESPACE = "/api/v1/namespaces/default"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
LABEL = "volcano.sh/job-name"


@dataclass(slots=True)
class Gangs:
    """So many jobs of ``size`` pods; the names begin with ``name``."""

    plane: ControlPlane
    name: str
    count: int = 12
    size: int = 5
    nodes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By the uid of each pod: all nodes that it was ever on."""

    def make(self) -> None:
        container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
        for number in range(self.count):
            job = {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": f"{self.name}{number}", "namespace": "default"},
                "spec": {
                    "schedulerName": "volcano",
                    "minAvailable": self.size,
                    "queue": "default",
                    "tasks": [{"name": "w", "replicas": self.size, "template": {"spec": {"containers": [container]}}}],
                },
            }
            self.plane.request("POST", JOBS, job)

    def bound(self) -> list[Any]:
        pods = self.plane.request("GET", f"{NAMESPACE}/pods?labelSelector={LABEL}")["items"]
        mine = [pod for pod in pods if pod["metadata"]["labels"][LABEL].startswith(self.name)]
        return [pod for pod in mine if pod["spec"].get("nodeName")]

    def begun(self) -> None:
        """Returns when some of the gangs are on their way."""
        eventually(self.bound)

    def whole(self) -> None:
        """Returns when all gangs are whole; fails when a pod was ever on two nodes, or a node has more than it can."""
        eventually(self._is_whole)
        assert all(len(nodes) == 1 for nodes in self.nodes.values())
        room = Counter(pod["spec"]["nodeName"] for pod in self.bound())
        assert max(room.values()) <= 32

    def _is_whole(self) -> bool:
        try:
            pods = self.bound()
        except OSError:
            return False
        jobs = Counter(pod["metadata"]["labels"][LABEL] for pod in pods)
        return len(jobs) == self.count and set(jobs.values()) == {self.size}

    def watch(self, stopped: threading.Event) -> None:
        """Note where pods are, until the end."""
        while not stopped.is_set():
            try:
                for line in self.plane.lines(f"{NAMESPACE}/pods?watch=1&timeoutSeconds=5", 10):
                    pod = json.loads(line)["object"]
                    if pod.get("spec", {}).get("nodeName"):
                        self.nodes[pod["metadata"]["uid"]].add(pod["spec"]["nodeName"])
                    if stopped.is_set():
                        return
            except (OSError, ValueError):
                stopped.wait(0.2)


@contextmanager
def gangs(plane: ControlPlane, name: str, **size: int) -> Iterator[Gangs]:
    """Gangs that are made and watched; deleted at the end."""
    made, stopped = Gangs(plane, name, **size), threading.Event()
    watching = threading.Thread(target=made.watch, args=(stopped,), daemon=True)
    watching.start()
    made.make()
    try:
        yield made
    finally:
        # First, so that what is told of the deletion ends the watch.
        stopped.set()
        for number in range(made.count):
            plane.request("DELETE", f"{JOBS}/{name}{number}")
        eventually(lambda: not made.bound())
        watching.join(20)


def environment_of(pid: int) -> dict[str, str]:
    """The environment of a process."""
    parts = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(part.split("=", 1) for part in parts if "=" in part)


def command_of(pid: int) -> list[str]:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]


def child(data: Path, name: str) -> int:
    """The process that is a service now, of the system with this data folder."""
    found = endpoint.read(data)
    assert found is not None
    return found.children[name]


def log_of(data: Path, name: str) -> str:
    return (data / "logs" / f"{name}.log").read_text()


def all_decided(data: Path) -> None:
    """Returns when every decision has one outcome."""
    wrong: list[str] = []

    def settled() -> bool:
        wrong[:] = undecided(child(data, "cluster_gateway"))
        return not wrong

    try:
        eventually(settled)
    finally:
        print(f"decisions without exactly one outcome: {wrong[:20]}")


def undecided(pid: int) -> list[str]:
    """The decisions without exactly one outcome, and how many they have, on the bus of the service that is process ``pid``."""
    return asyncio.run(_undecided(pid))


async def bus_of(pid: int) -> JetStreamBus:
    """The bus of the service that is process ``pid``."""
    command = command_of(pid)
    url, token = command[command.index("--nats-url") + 1], environment_of(pid)["TIDEGATE_NATS_TOKEN"]
    return await JetStreamBus.connect(url, "test", token=token)


async def _undecided(pid: int) -> list[str]:
    bus = await bus_of(pid)
    try:
        outcomes: Counter[str] = Counter()
        async for entry in _entries(bus, subjects.FACTS):
            outcomes.update(one.decision_id for one in facts.outcomes(fact_pb2.ChangeSet.FromString(entry.payload)))
        wrong = []
        for service in SERVICES:
            async for entry in _entries(bus, subjects.decisions(service)):
                commit = decision_pb2.Commit.FromString(entry.payload)
                ids = [decision_id for decision_id, _ in decode_commit(commit)]
                wrong += [f"{one}: {outcomes[one]}" for one in ids if outcomes[one] != 1]
        return wrong
    finally:
        await bus.close()


def decisions_of(pid: int, service: str) -> list[Decision]:
    """All that ``service`` has decided, on the bus of the service that is process ``pid``."""

    async def read() -> list[Decision]:
        bus = await bus_of(pid)
        try:
            commits = [
                decision_pb2.Commit.FromString(entry.payload)
                async for entry in _entries(bus, subjects.decisions(service))
            ]
        finally:
            await bus.close()
        return [decision for commit in commits for _, decision in decode_commit(commit)]

    return asyncio.run(read())


async def _entries(bus: JetStreamBus, name: str) -> Any:
    log = bus.log(name)
    last, reader = await log.last(), log.read(0)
    if last:
        async for entries in reader:
            for entry in entries:
                yield entry
            if entries[-1].sequence >= last:
                break
    await reader.aclose()
