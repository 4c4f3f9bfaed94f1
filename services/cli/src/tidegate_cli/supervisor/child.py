"""One supervised process: started again whenever it ends by itself, later each time that it ends soon."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from chassis import SteadyClock
from tidegate_cli.supervisor.log_file import Printing, RotatedFile
from tidegate_cli.supervisor.orphans import die_with_parent
from tidegate_cli.supervisor.plan import Program
from tidegate_cli.supervisor.priorities import yield_to_others

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
LASTING_SECONDS = 10.0
"""A process that lived this long is started again at once."""


class Child:
    """Keeps ``program`` running until it is stopped. What it prints goes to a file of its own, which is rotated."""

    def __init__(
        self, program: Program, log_folder: Path, tell: Callable[[str], None], clock: SteadyClock | None = None
    ) -> None:
        """``clock`` is the one that the process shall agree with, whenever it is started."""
        self.program, self._tell, self._clock = program, tell, clock
        self._log_file = log_folder / f"{program.name}.log"
        self._printing: Printing | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._stopping = asyncio.Event()
        self.restarts = 0

    @property
    def pid(self) -> int:
        """The process id; 0 while it does not run."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    async def keep_running(self) -> None:
        """Start it, and again each time it ends, until stop()."""
        self._printing = Printing(RotatedFile(self._log_file))
        try:
            await self._again_and_again()
        finally:
            self._printing.close()

    async def _again_and_again(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            ended = await self._run_once()
            if self._stopping.is_set():
                return
            self.restarts += 1
            pause = (
                FIRST_PAUSE_SECONDS
                if time.monotonic() - began > LASTING_SECONDS
                else min(pause * 2, LONGEST_PAUSE_SECONDS)
            )
            self._tell(f"{self.program.name} ended with {ended}; starting it again (log: {self._log_file})")
            try:
                await asyncio.wait_for(self._stopping.wait(), pause)
            except TimeoutError:
                continue

    async def _run_once(self) -> str:
        """Run it to its end; how it ended, in words."""
        try:
            async with self._starting:
                if self._stopping.is_set():
                    return "a stop"
                self._process = await self._begin()
        except OSError as error:
            return f"{error.strerror} before it began"
        return _named(await self._process.wait())

    async def _begin(self) -> asyncio.subprocess.Process:
        environment = dict(self.program.environment)
        if self._clock is not None:
            environment["TIDEGATE_CLOCK_BASE_MS"] = str(self._clock.base)
        assert self._printing is not None, "keep_running() has begun"
        return await asyncio.create_subprocess_exec(
            *self.program.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._printing.into,
            stderr=self._printing.into,
            env=environment or None,
            start_new_session=True,
            preexec_fn=partial(_before_exec, os.getpid(), self.program),
        )

    def end(self) -> None:
        """Ask it to end, to be started again."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, and make it end when it does not within its grace."""
        self._stopping.set()
        async with self._starting:
            process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), grace_seconds)
        except TimeoutError:
            self._tell(f"{self.program.name} did not end within {grace_seconds:g} s; killing it")
            process.kill()
            await process.wait()


def _before_exec(supervisor: int, program: Program) -> None:
    die_with_parent(supervisor, program.when_orphaned)
    if program.niceness:
        yield_to_others(program.niceness)


def _named(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
