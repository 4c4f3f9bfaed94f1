"""Starts the whole system on this machine, keeps every part running, and stops it in order."""

import asyncio
import fcntl
import os
import secrets
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path

from bus.server import free_port, free_ports, wait_until_open
from chassis import SteadyClock
from tidegate.services import SERVICES
from tidegate_cli.supervisor import endpoint
from tidegate_cli.supervisor.child import Child
from tidegate_cli.supervisor.health import wait_ready
from tidegate_cli.supervisor.plan import (
    CONTROL,
    STOP_ORDER,
    Ports,
    UpSettings,
    nats_program,
    service_program,
)
from tidegate_cli.supervisor.request_path import is_free, request_path

USUAL_PORT = 7470
READY_SECONDS = 60.0
GRACE_SECONDS = {"node_agent": 40.0, "inference_gateway": 15.0}
USUAL_GRACE_SECONDS = 5.0
FULL_BYTES = 16 << 20
"""With less than this left in the data folder a write may already have failed."""


class CannotStart(Exception):
    """The system cannot be started; the text says why and what to do."""


class Supervisor:
    """One system in one data folder."""

    def __init__(self, settings: UpSettings, tell: Callable[[str], None]) -> None:
        self._settings, self._tell = settings, tell
        self._folder = settings.data_dir
        self._logs = self._folder / "logs"
        self._children: dict[str, Child] = {}
        self._keeping: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._server = self._requests = ""
        self._clock = SteadyClock()
        self._full = False

    async def run(self, ready: Callable[[str], None]) -> None:
        """Start everything, call ``ready`` with the API's address, and go on until a signal. Raises CannotStart."""
        self._prepare()
        with self._lock():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, self._stop.set)
            try:
                await self._start()
                if not self._stop.is_set():
                    ready(self._server)
                await self._watch()
            finally:
                await self._stop_all()
                endpoint.remove(self._folder)

    def _prepare(self) -> None:
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            probe = self._folder / ".writable"
            probe.write_text("")
            probe.unlink()
        except OSError as error:
            raise CannotStart(f"{self._folder}: {error.strerror}; choose another folder with --data-dir") from None
        # User processes drop to other users: they must be able to pass through to their own folders, not to look around.
        self._folder.chmod(0o711)

    def _lock(self) -> "_Locked":
        return _Locked(self._folder / "up.lock")

    async def _start(self) -> None:
        token, api_port = secrets.token_urlsafe(24), self._api_port()
        try:
            requests = request_path(self._folder, self._settings.service_settings, inner=self._settings.local)
        except ValueError as error:
            raise CannotStart(str(error)) from None
        self._requests = requests.address
        # The address for users is taken last, so it must not look free to the others: one of them would answer there.
        nats_port, *others = free_ports(1 + 2 * len(SERVICES), besides={api_port, requests.port})
        self._server = f"127.0.0.1:{api_port}"
        try:
            nats = nats_program(self._settings, nats_port, token)
        except FileNotFoundError as error:
            raise CannotStart(str(error)) from None
        self._keep(Child(nats, self._logs, self._tell))
        await self._until_ready("nats", wait_until_open("127.0.0.1", nats_port))
        ports = {name: Ports(others.pop(), others.pop()) for name in SERVICES}
        ports["admission"] = ports["admission"]._replace(health=api_port)
        for name in ("inference_gateway", "node_agent", "cluster_gateway"):
            ports[name] = ports[name]._replace(requests=requests)
        for name in SERVICES:
            if name != "node_agent" or (self._settings.local_node and self._settings.local):
                program = service_program(name, self._settings, nats_port, token, ports[name])
                self._keep(Child(program, self._logs, self._tell, self._clock))
        for name, child in self._children.items():
            if child.program.health_port:
                await self._until_ready(name, wait_ready(child.program.health_port))
        self._write_endpoint()

    def _api_port(self) -> int:
        if self._settings.port:
            if not is_free(self._settings.port):
                raise CannotStart(f"port {self._settings.port} is taken; choose another with --port")
            return self._settings.port
        return USUAL_PORT if is_free(USUAL_PORT) else free_port()

    def _keep(self, child: Child) -> None:
        self._children[child.program.name] = child
        self._keeping.append(asyncio.create_task(child.keep_running(), name=child.program.name))

    async def _until_ready(self, name: str, waiting: Coroutine[object, object, None]) -> None:
        """Wait for a part; raises CannotStart when it does not come up, and returns early when told to stop."""
        ready, stop = asyncio.ensure_future(waiting), asyncio.ensure_future(self._stop.wait())
        done, _ = await asyncio.wait({ready, stop}, timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in (ready, stop):
            task.cancel()
        if not done:
            raise CannotStart(
                f"{name} did not become ready within {READY_SECONDS:g} s; see {self._logs / f'{name}.log'}"
            )

    async def _watch(self) -> None:
        """Keep the endpoint's list of processes right until the end."""
        pids: dict[str, int] = {}
        while not self._stop.is_set():
            self._clock.now()
            now = {name: child.pid for name, child in self._children.items()}
            if now != pids and self._can_write_endpoint():
                pids = now
            self._look_for_room()
            try:
                await asyncio.wait_for(self._stop.wait(), 1.0)
            except TimeoutError:
                continue

    def _look_for_room(self) -> None:
        """The message bus writes no more once it had no room to write: when there is room again it is started anew."""
        found = os.statvfs(self._folder)
        full = found.f_bavail * found.f_frsize < FULL_BYTES
        if full and not self._full:
            self._tell(f"{self._folder} is full: what runs goes on, nothing new is begun until there is room")
        elif self._full and not full:
            self._tell(f"{self._folder} has room again; starting the message bus anew")
            self._children["nats"].end()
        self._full = full

    def _can_write_endpoint(self) -> bool:
        try:
            self._write_endpoint()
        except OSError as error:  # a full folder must not end the system; it is written when there is room again
            self._tell(f"{self._folder}: {error.strerror}")
            return False
        return True

    def _write_endpoint(self) -> None:
        pids = {name: child.pid for name, child in self._children.items()}
        endpoint.write(self._folder, endpoint.mine(self._server, "users.yaml", pids, self._requests))

    async def _stop_all(self) -> None:
        control = [child for name, child in self._children.items() if name in CONTROL]
        await asyncio.gather(*(child.stop(_grace_seconds(child.program.name)) for child in control))
        for name in STOP_ORDER:
            if name in self._children:
                await self._children[name].stop(_grace_seconds(name))
        await asyncio.gather(*self._keeping, return_exceptions=True)


class _Locked:
    """One supervisor for one data folder."""

    def __init__(self, file: Path) -> None:
        self._file, self._descriptor = file, -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise CannotStart(f"a system runs in {self._file.parent} already; `tidegate down` stops it") from None

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _grace_seconds(name: str) -> float:
    return GRACE_SECONDS.get(name, USUAL_GRACE_SECONDS)
