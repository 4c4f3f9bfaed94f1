"""Waiting for the end of processes that are not children, without asking again and again."""

import asyncio
import os
from collections.abc import Callable

from node_agent.runtime.processes import open_pidfd


class ProcessWatch:
    """Calls back once for each watched process when it has ended."""

    def __init__(self) -> None:
        self._fds: dict[int, int] = {}

    def add(self, pid: int, started: int, ended: Callable[[], None]) -> None:
        """Call ``ended`` from the event loop when the process that started then has ended, or soon if it has already."""
        loop = asyncio.get_running_loop()
        fd = open_pidfd(pid, started)
        if fd is None:
            loop.call_soon(ended)
            return
        self._fds[fd] = pid

        def readable() -> None:
            self._forget(fd, loop)
            ended()

        loop.add_reader(fd, readable)

    def close(self) -> None:
        """Watch nothing any more."""
        loop = asyncio.get_running_loop()
        for fd in list(self._fds):
            self._forget(fd, loop)

    def _forget(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        if self._fds.pop(fd, None) is not None:
            loop.remove_reader(fd)
            os.close(fd)
