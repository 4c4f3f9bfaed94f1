"""A whole Tidegate on this machine: real processes, the real bus, real pods; and the means to hurt it."""

import asyncio
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from bus.jetstream import JetStreamBus
from bus.server import free_port
from kube import Manifest, key_of
from tidegate.client import NotFound, SyncClient, TimedOut, Unavailable, accepted, find_endpoint
from tidegate_cli.supervisor import endpoint


def _beside(name: str) -> ModuleType:
    """The module beside this file; tests are imported by path, so it is, too."""
    known = f"tidegate_system_{name}"
    spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
    assert spec and spec.loader
    module = sys.modules[known] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


log_audit, gangs, processes = (_beside(name) for name in ("log_audit", "gangs", "processes"))
T = TypeVar("T")
START_SECONDS = 90.0
STOP_SECONDS = 60.0
PATIENT_SECONDS = 90.0
"""How long is waited for what takes seconds on a machine with nothing else to do."""


class System:
    """One running system. Reads and writes wait while a part of it is away, as a patient user would."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder, self._flags = folder, flags
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._client: SyncClient | None = None

    @property
    def client(self) -> SyncClient:
        assert self._client is not None, "the system does not run"
        return self._client

    def start(self) -> "System":
        """Start it, and return once it is ready."""
        arguments = ["up", "--data-dir", str(self.folder), "--port", str(free_port()), *self._flags]
        with (self.folder / "up.log").open("ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-m", "tidegate_cli.main", *arguments],
                stdout=log,
                stderr=log,
                preexec_fn=processes.end_with_me,
            )
        self.eventually(lambda: self._is_ready() or self._supervisor.poll() is not None, START_SECONDS)
        assert self._supervisor.poll() is None, (self.folder / "up.log").read_text()
        self._client = SyncClient(find_endpoint(data_dir=self.folder), timeout_seconds=10.0)
        return self

    def _is_ready(self) -> bool:
        found = endpoint.read(self.folder)
        return found is not None and self._supervisor is not None and found.pid == self._supervisor.pid

    def stop(self) -> None:
        """Stop it in order; nothing of it may be left."""
        if self._supervisor is None:
            return
        self.client.close()
        self._supervisor.send_signal(signal.SIGTERM)
        self._supervisor.wait(STOP_SECONDS)
        self._supervisor = None
        left = self.processes()
        assert not left, f"processes are left: {left}"

    def apply(self, *manifests: Manifest) -> None:
        """Create or update; refused objects are an error, a part that is away is waited for."""
        self.patiently(lambda: accepted(self.client.apply(manifests)))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object; that it is gone already is as good."""
        key = key_of({**_KINDS[kind], "metadata": {"name": name, "namespace": "default"}})
        self.patiently(lambda: [one for one in self.client.delete([key]) if not one.missing])

    def get(self, kind: str, name: str) -> Manifest | None:
        """One object, or None."""
        try:
            return self.patiently(lambda: self.client.get(kind, name))
        except NotFound:
            return None

    def all_of(self, kind: str, selector: str = "") -> list[Manifest]:
        return self.patiently(lambda: self.client.list(kind, "default", label_selector=selector))

    def patiently(self, action: Callable[[], T], seconds: float = PATIENT_SECONDS) -> T:
        """What ``action`` returns, tried again while a part of the system is away."""
        until = time.monotonic() + seconds
        while True:
            try:
                return action()
            except (Unavailable, TimedOut):
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def eventually(self, holds: Callable[[], Any], seconds: float = PATIENT_SECONDS) -> Any:
        """Wait until ``holds`` returns something true; fails with what it said last, or what it raised."""
        until, said = time.monotonic() + seconds, None
        while time.monotonic() < until:
            said = holds()
            if said:
                return said
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds:g} s ({holds.__qualname__})")

    def finally_right(self, complaints: Callable[[], list[str]], seconds: float = PATIENT_SECONDS) -> None:
        """Wait until there is nothing to complain about; fails with the last complaints."""
        until = time.monotonic() + seconds
        while said := complaints():
            assert time.monotonic() < until, f"still wrong after {seconds:g} s: {'; '.join(said)}\n{self.tail()}"
            time.sleep(0.1)

    def pid(self, service: str) -> int:
        """The process of a part of the system; 0 while it does not run."""
        return int(json.loads((self.folder / "endpoint.json").read_text())["children"].get(service, 0))

    def kill(self, *services: str) -> None:
        """SIGKILL to each of them at once; the supervisor starts them again."""
        for pid in [processes.started_by(self._supervisor.pid, service) for service in services]:
            os.kill(pid, signal.SIGKILL)

    def kill_supervisor(self) -> None:
        """SIGKILL to the process that keeps all others running."""
        assert self._supervisor is not None
        self._supervisor.kill()
        self._supervisor.wait()
        self.client.close()

    def processes(self) -> dict[int, str]:
        """Every live process of this system, with its environment and command."""
        return dict(processes.processes_of(self.folder))

    def pod_processes(self) -> dict[str, list[int]]:
        """The live processes of pods of this system by the uid of their pod."""
        found: dict[str, list[int]] = defaultdict(list)
        for pid, words in processes.processes_of(self.folder):
            mark = re.search(r"TIDEGATE_POD_UID=([^\0]+)", words)
            if mark:
                found[mark[1]].append(pid)
        return dict(found)

    async def connect(self) -> JetStreamBus:
        """A connection to the bus of its own."""
        text = (self.folder / "nats" / "nats.conf").read_text()
        address, token = re.search(r'listen: "(.*)"', text), re.search(r'token: "(.*)"', text)
        assert address and token
        return await JetStreamBus.connect(f"nats://{address[1]}", "test", token=token[1])

    def on_bus(self, action: Callable[[JetStreamBus], Any]) -> Any:
        """Run ``action`` with a connection to the bus."""

        async def run() -> Any:
            bus = await self.connect()
            try:
                return await action(bus)
            finally:
                await bus.close()

        return asyncio.run(run())

    def audit(self) -> None:
        """Read the logs from their beginning: nothing may ever have been half done, or done twice."""
        wrong = self.on_bus(log_audit.audit)
        assert not wrong, "\n".join(wrong)

    def tail(self) -> str:
        """The ends of the logs, for a failure's text."""
        logs = sorted((self.folder / "logs").glob("*.log"))
        return "\n".join(f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-4:])[-1500:] for log in logs)


_KINDS = {
    "job": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"},
    "pod": {"apiVersion": "v1", "kind": "Pod"},
}


@contextmanager
def running(*flags: str, folder: Path | None = None) -> Iterator[System]:
    """A system in a folder that every user may pass through to, as pods' users must; in one of its own if none is given.

    At the end its logs are audited, and no process may be left.
    """
    made = Path(tempfile.mkdtemp(prefix="tidegate-system-")) if folder is None else folder
    made.chmod(0o711)
    system = System(made, *flags)
    try:
        yield system.start()
        system.audit()
    finally:
        system.stop()
        if folder is None and not os.environ.get("TIDEGATE_KEEP"):
            shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A system that the tests of one module share; each leaves it clean."""
    with running() as started:
        yield started


@pytest.fixture
def system_in() -> Callable[[Path], Any]:
    """Makes a system in a given folder: ``with system_in(folder) as system``."""
    return lambda folder: running(folder=folder)


@pytest.fixture(scope="session")
def system_with() -> Callable[..., Any]:
    """Makes a system with flags of `tidegate up`: ``with system_with("--sim-nodes", "5") as system``."""
    return running
