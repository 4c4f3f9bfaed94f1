"""The agent's side of the spawner: starts it, asks it for processes, reads its replies."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from node_agent.runtime import spawner

_SOURCES = Path(__file__).resolve().parents[2]
_TRIES = 3
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from node_agent.runtime.spawner import serve; serve(0)"


class SpawnerLost(OSError):
    """The spawner ended before it replied; the request may or may not have been carried out."""


class Launcher:
    """Starts processes by way of the spawner, which it starts itself, and again when it was lost."""

    def __init__(self, data_dir: Path) -> None:
        self._log = data_dir / "spawner.log"
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The spawner's process id, while there is one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the spawner, if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_SOURCES)],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        self._channel = ours

    def close(self) -> None:
        """End the spawner; what it started goes on."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    async def launch(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a shim with its container (see ``shim.run``); returns the state that it wrote.

        Asked again when the spawner is lost: the shim's claim to its attempt lets only one request through. Raises
        SpawnerLost when that does not help.
        """
        for _ in range(_TRIES - 1):
            try:
                return await self._ask(spawner.SHIM, request)
            except SpawnerLost:
                continue
        return await self._ask(spawner.SHIM, request)

    async def run_inside(self, request: dict[str, Any]) -> tuple[int | None, str]:
        """Run a command inside a container (see ``inside.run``): its exit code (None: too slow) and what it said.

        Raises SpawnerLost.
        """
        news = await self._ask(spawner.INSIDE, request)
        return news["exit_code"], news["output"]

    async def try_namespaces(self, stage: Path, own_user: bool) -> str:
        """Why a mount namespace cannot be had here; "" when it can. Raises SpawnerLost.

        ``stage`` is an empty folder.
        """
        news = await self._ask(spawner.TRIAL, {"own_user": own_user, "stage": str(stage)})
        return str(news["error"])

    async def _ask(self, letter: bytes, request: dict[str, Any]) -> dict[str, Any]:
        self.start()
        reading, reply = os.pipe()
        try:
            self._send(letter, request, reply)
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(reply)
        line = await _read_line(reading)
        if not line:
            raise SpawnerLost("the spawner ended before the process was started")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _send(self, letter: bytes, request: dict[str, Any], reply: int) -> None:
        memory = os.memfd_create("request")
        try:
            with os.fdopen(os.dup(memory), "wb") as stream:
                stream.write(json.dumps(request).encode())
            for _ in range(2):
                assert self._channel is not None, "start() makes the channel"
                try:
                    socket.send_fds(self._channel, [letter], [memory, reply])
                    return
                except (BrokenPipeError, ConnectionResetError):  # it was killed, and a fresh one knows as much
                    self.close()
                    self.start()
            raise SpawnerLost("the spawner cannot be kept running")
        finally:
            os.close(memory)


async def _read_line(fd: int) -> bytes:
    """What comes through the pipe ``fd`` up to the end of a line or of the pipe; closes it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()
    gathered = bytearray()

    def read() -> None:
        chunk = os.read(fd, 65_536)
        gathered.extend(chunk)
        if (not chunk or chunk.endswith(b"\n")) and not done.done():
            done.set_result(bytes(gathered))

    loop.add_reader(fd, read)
    try:
        return await done
    finally:
        loop.remove_reader(fd)
        os.close(fd)
