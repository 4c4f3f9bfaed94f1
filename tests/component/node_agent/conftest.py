"""A node agent with real processes, and the side that it reports to."""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kube import Manifest
from node_agent.agent import Agent
from node_agent.bus_link import log_piece
from node_agent.ports import Assignment, Report
from node_agent.runtime.processes import all_processes
from node_agent.settings import AgentSettings
from tidegate.node.v1.node_pb2 import LogRequest


class Upstream:
    """Stores reports; ``broken`` makes it refuse them."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.statuses: dict[str, Manifest] = {}
        self.gone: set[str] = set()
        self.secrets: dict[str, Mapping[str, bytes]] = {}
        self.broken = False
        self._news = asyncio.Condition()

    async def report(self, report: Report) -> None:
        if self.broken:
            raise ConnectionError("not stored")
        self.reports.append(report)
        for pod in report.pods:
            self.statuses[pod.uid] = pod.status
        self.gone.update(report.gone)
        async with self._news:
            self._news.notify_all()

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        return self.secrets[f"{namespace}/{name}"]

    async def until(self, holds: Callable[[], Any], seconds: float = 60) -> None:
        """Wait for a report after which ``holds``."""
        try:
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(holds)
        except TimeoutError:
            raise AssertionError(f"not in time; the pods are {self.statuses}, gone {self.gone}") from None

    async def phase(self, uid: str, phase: str) -> Manifest:
        """Wait for a phase of a pod, or for the end of it; returns its status."""
        await self.until(lambda: self.statuses.get(uid, {}).get("phase") in (phase, "Succeeded", "Failed"))
        status = self.statuses[uid]
        assert status["phase"] == phase, f"{uid} came to another end: {status}"
        return status

    def container(self, uid: str, name: str = "main") -> Manifest:
        """The newest status of a container."""
        status = self.statuses[uid]
        every = [*status["containerStatuses"], *status.get("initContainerStatuses", ())]
        return next(item for item in every if item["name"] == name)


class Bench:
    """One agent at a time on one data folder."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings, self.upstream = settings, Upstream()
        self.agent: Agent | None = None
        self.revision = self.clock_shift_ms = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> Agent:
        assert self.agent is not None
        return self.agent

    async def start(self) -> Agent:
        self.agent = Agent(self.settings, self.upstream, lambda: time.time_ns() // 1_000_000 + self.clock_shift_ms)
        self._task = asyncio.create_task(self.agent.run())
        count = len(self.upstream.reports)
        await self.upstream.until(lambda: len(self.upstream.reports) > count or self._task.done())
        if self._task.done():
            self._task.result()
        return self.agent

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def assign(
        self, *pods: Manifest, config_maps: Any = None, hosts: Any = None, slo: Any = None, node: Any = None
    ) -> None:
        self.revision += 1
        others = (config_maps or {}, hosts or {}, slo or {}, node or {})
        self.running.assign(Assignment("node-a", self.revision, pods, *others))

    async def run(self, pod: Manifest, phase: str, **others: Any) -> Manifest:
        """Assign one pod and wait for a phase of it."""
        self.assign(pod, **others)
        return await self.upstream.phase(pod["metadata"]["uid"], phase)

    def pod(self, name: str = "p", *command: str, **spec: Any) -> Manifest:
        """A pod with one container, ``main``; ``container`` are more fields of it, ``metadata`` more of the pod's."""
        container = {"name": "main", "image": "busybox", "command": list(command), **spec.pop("container", {})}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **spec.pop("metadata", {})}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": "node-a", "restartPolicy": "Never", "containers": [container], **spec},
            "status": {"podIP": "127.20.0.1"},
        }

    def leftovers(self, *words: str) -> list[str]:
        """Processes of pods of this bench that run, with all of ``words`` in their command."""
        return [line for line in leftovers(self.settings.data_dir) if all(word in line for word in words)]

    async def until_log(self, uid: str, text: str, container: str = "main") -> None:
        """Wait until a container has written ``text``."""
        said = ""
        async with asyncio.timeout(60):
            async for chunk in self.told(uid, container, follow=True):
                said += chunk.decode()
                if text in said:
                    return
        raise AssertionError(f"the log of {uid} ended without {text!r}: {said!r}")

    async def log(self, uid: str, container: str = "main") -> str:
        return b"".join([chunk async for chunk in self.told(uid, container)]).decode()

    async def told(
        self, uid: str, container: str = "main", follow: bool = False, **wanted: Any
    ) -> AsyncIterator[bytes]:
        """What a container wrote, piece by piece, as it is told on request; ``wanted`` are fields of that."""
        offset = -1
        while True:
            asked = {"tail": -1, **wanted, "pod_uid": uid, "container": container, "offset": offset}
            reply = log_piece(self.running, LogRequest(**asked))
            if reply.error:
                raise LookupError(reply.error)
            if reply.data:
                yield reply.data
            elif reply.ended or not follow:
                return
            else:
                await asyncio.sleep(0.02)
            offset = reply.next_offset


@asynccontextmanager
async def bench_in(folder: Path, **changes: Any) -> AsyncIterator[Bench]:
    """A running agent; at the end every pod is killed, and nothing may be left of any."""
    settings = AgentSettings(
        **{
            "node": "node-a",
            "data_dir": folder / "data",
            "cgroup_parent": f"tidegate-test-{os.getpid()}",
            "backoff_ms": 50,
            "backoff_limit_ms": 200,
            "report_retry_ms": 10,
            "secret_retry_ms": 50,
            "log_check_ms": 50,
            "usage_interval_ms": 100,
            **changes,
        }
    )
    bench = Bench(settings)
    await bench.start()
    try:
        yield bench
    finally:
        if bench.agent is not None and bench._task is not None:
            for worker in bench.agent._workers.values():
                worker.stop(0)
            await asyncio.wait_for(bench.agent.drain(), 60)
            isolation = bench.agent.isolation
            await bench.stop()
            if isolation is not None and isolation.cgroups.hierarchy is not None:
                folders = isolation.cgroups.hierarchy.folders("")
                assert [folder for folder in folders if folder.exists()] == [], "a control group is left"
        assert leftovers(folder) == [], "a process is left"


@pytest.fixture
def waits() -> Callable[[int], bool]:
    """Whether a process has come so far as to catch SIGUSR1, which would end it before."""

    def catches(pid: int) -> bool:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return bool(int(lines["SigCgt"], 16) >> (signal.SIGUSR1 - 1) & 1)

    return catches


def leftovers(folder: Path) -> list[str]:
    """Processes that have something of ``folder`` in their environment or command."""
    found = []
    for process in all_processes():
        try:
            text = Path(f"/proc/{process.pid}/environ").read_bytes() + Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text and process.pid != os.getpid() and process.state not in "ZX":
            found.append(f"{process.pid} {text!r}")
    return found


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user may get to, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A running agent with short pauses."""
    async with bench_in(tmp_path) as made:
        yield made


@pytest.fixture
def bench_with(open_folder: Path) -> Callable[..., Any]:
    """Makes a running agent with other settings: ``async with bench_with(enforce=False) as bench``."""
    return lambda **changes: bench_in(open_folder, **changes)


@pytest.fixture
def ahead() -> Iterator[None]:
    """This process goes before others where it may: what is measured is how long an agent takes, not how long it waits for a CPU."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, usual)
