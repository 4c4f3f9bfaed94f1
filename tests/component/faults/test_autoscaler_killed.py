"""The real process of inference_autoscaler is killed between a scale-up and its outcome, on a real bus."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from bus import BusError
from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from kube import Decision, Edit, Key, Manifest, Outcome, Verb, rfc3339
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.codec.facts import FactSet, encode
from tidegate.decision.v1 import decision_pb2

SERVICE = "inference_autoscaler"
WEB, AUTOSCALER = Key("Deployment.apps", "default", "web"), Key("HorizontalPodAutoscaler.autoscaling", "default", "web")
SAMPLE = Key("MetricReading.tidegate.dev", "default", "queue")
SILENT = asyncio.subprocess.DEVNULL


def now() -> int:
    return time.time_ns() // 1_000_000


class Cluster:
    """The cluster side, as far as a log of facts shows it."""

    def __init__(self, bus: JetStreamBus) -> None:
        self._facts, self.decisions = bus.log(subjects.FACTS), bus.log(subjects.decisions(SERVICE))

    async def tell(self, *edits: Edit, outcomes: tuple[Outcome, ...] = (), position: int = 0) -> None:
        last = await self._facts.last()
        content = encode(FactSet(now(), edits, outcomes, {SERVICE: position}))
        await self._facts.append(content, expected=last, message_id=f"{last}")

    async def sizes(self, count: int) -> list[tuple[int, str, Decision]]:
        """The sizes that were decided, with sequence and id, once there are so many."""
        found = list[tuple[int, str, Decision]]()
        async with asyncio.timeout(60), aclosing(self._commits()) as commits:
            async for sequence, commit in commits:
                made = decode_commit(commit)
                found += [(sequence, name, one) for name, one in made if one.name == "ReplicasScaled"]
                if len(found) >= count:
                    return found
        return found

    async def passed_over(self) -> int:
        """The sequence at which it was written down that a round passed somebody over, as a decision was on its way."""
        async with asyncio.timeout(60), aclosing(self._commits()) as commits:
            async for sequence, commit in commits:
                if any(part.name == "horizontal/owed" and part.content for part in commit.private_parts):
                    return sequence
        raise AssertionError("the log ended")

    async def _commits(self) -> AsyncGenerator[tuple[int, decision_pb2.Commit], None]:
        async with aclosing(self.decisions.read(0)) as reader:
            async for entries in reader:
                for entry in entries:
                    yield entry.sequence, decision_pb2.Commit.FromString(entry.payload)


def sample(value: int, *, fresh: bool = False) -> Edit:
    spec = {"metric": {"name": "queue"}, "value": str(value), "timestamp": rfc3339(now())}
    return Edit(SAMPLE, "uid-sample", {"creationTimestamp": rfc3339(now())}, {"spec": spec}, {}, fresh=fresh)


def deployment(replicas: int, *, fresh: bool = False) -> Edit:
    labels: Manifest = {"matchLabels": {"app": "web"}}
    body = {"spec": {"replicas": replicas, "selector": labels}}
    return Edit(WEB, "uid-web", {"creationTimestamp": rfc3339(now())}, body, {}, fresh=fresh)


def autoscaler() -> Edit:
    target = {"type": "AverageValue", "averageValue": "10"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 30,
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
    }
    metadata = {"creationTimestamp": rfc3339(now()), "generation": 1}
    return Edit(AUTOSCALER, "uid-autoscaler", metadata, {"spec": spec}, {}, fresh=True)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[ServerSettings, JetStreamBus]]:
    settings = ServerSettings(folder / "nats", free_port(), "secret")
    server = await asyncio.create_subprocess_exec(*command(settings), stdout=SILENT, stderr=SILENT)
    await wait_until_open(settings.host, settings.port)
    bus = await JetStreamBus.connect(settings.url, "test", token=settings.token)
    try:
        yield settings, bus
    finally:
        await bus.close()
        server.kill()
        await server.wait()


async def started(settings: ServerSettings, bus: JetStreamBus, folder: Path) -> asyncio.subprocess.Process:
    """The process, once it leads."""
    words = ["--nats-url", settings.url, "--nats-token", settings.token, "--data-dir", str(folder)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    program = [sys.executable, "-m", f"{SERVICE}.main", *words]
    process = await asyncio.create_subprocess_exec(*program, env=kept, stdout=SILENT, stderr=SILENT)
    async with asyncio.timeout(60):
        while True:
            try:
                await bus.request(subjects.question(SERVICE, "settings"), b"{}", timeout=1.0)
                return process
            except BusError:
                await asyncio.sleep(0.05)


async def test_a_scale_up_is_neither_repeated_nor_forgotten(tmp_path: Path) -> None:
    async with served(tmp_path) as (settings, bus):
        cluster = Cluster(bus)
        await cluster.tell(deployment(4, fresh=True), sample(70, fresh=True))
        process = await started(settings, bus, tmp_path)
        try:
            await cluster.tell(autoscaler())
            ((sequence, name, made),) = await cluster.sizes(1)
            assert "New size: 7" in made.message
            process.kill()
            await process.wait()
            process = await started(settings, bus, tmp_path)
            await cluster.passed_over()
            patched = {one.verb for one in made.mutations}
            assert patched == {Verb.PATCH, Verb.STATUS}
            outcome = Outcome(name, made.name, made.subject, True)
            status = next(one.patch for one in made.mutations if one.verb is Verb.STATUS)
            told = Edit(AUTOSCALER, "uid-autoscaler", status=status)
            await cluster.tell(deployment(7), told, sample(90), outcomes=(outcome,), position=sequence)
            found = await cluster.sizes(2)
            assert [one.message.partition(";")[0] for _, _, one in found] == ["New size: 7", "New size: 9"], "once each"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
