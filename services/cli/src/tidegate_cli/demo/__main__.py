"""`python -m tidegate_cli.demo`: the whole system on this machine for half a minute, with real jobs."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from bus.server import free_port
from tidegate.client import Client, ClientError, find_endpoint
from tidegate.services import SERVICES
from tidegate_cli.demo.board import Board
from tidegate_cli.demo.closing import show_findings, show_next
from tidegate_cli.demo.course import Course, Findings
from tidegate_cli.demo.data_folder import Unusable, make_fresh
from tidegate_cli.demo.following import DemoFailed, Following
from tidegate_cli.demo.pod_processes import left_behind
from tidegate_cli.demo.screen import Screen, make_console
from tidegate_cli.documents import Unreadable
from tidegate_cli.supervisor.plan import UpSettings
from tidegate_cli.supervisor.supervisor import CannotStart, Supervisor

CLONE = Path(__file__).resolve().parents[5]
FAILED, INTERRUPTED = 1, 130
REFRESH_SECONDS = 0.1


class Interrupted(Exception):
    """Somebody asked the demo to end."""


class Demo:
    """One run: starts the system, plays the course, stops the system."""

    def __init__(self, folder: Path, examples: Path, console: Console) -> None:
        began = time.monotonic()
        self._clock: Callable[[], float] = lambda: time.monotonic() - began
        self._folder, self._examples = folder, examples
        self.board = Board()
        self.screen = Screen(console, self.board, self._clock)

    async def run(self) -> Findings:
        """Raises CannotStart, DemoFailed, ClientError and Interrupted, when the system has been stopped again."""
        settings = UpSettings(self._folder, port=free_port(), inventory=self._examples / "8-cpus.inventory")
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        system = asyncio.create_task(Supervisor(settings, self.screen.happened).run(ready.set_result))
        self._playing = asyncio.create_task(self._play(ready))
        self._listen()
        self.screen.headline(f"up: the message bus, {len(SERVICES)} services, and this machine as a node")
        refreshing = asyncio.create_task(self._refresh())
        await asyncio.wait({system, self._playing}, return_when=asyncio.FIRST_COMPLETED)
        self.screen.headline("down: every process is asked to end")
        self._playing.cancel()
        if not system.done():
            # A signal is how a supervisor is told to stop. Cancelled in the middle of it, it would leave processes behind.
            signal.raise_signal(signal.SIGHUP)
        await asyncio.gather(self._playing, system, return_exceptions=True)
        refreshing.cancel()
        if self._playing.cancelled():
            await system  # raises what kept it from starting
            raise Interrupted
        return self._playing.result()

    def _listen(self) -> None:
        """End early when somebody asks for it."""
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._playing.cancel)

    async def _play(self, ready: "asyncio.Future[str]") -> Findings:
        server = await ready
        self._listen()  # again: while it started, the supervisor listened in our place
        self.screen.happened(f"the system is ready at {server}")
        async with Client(find_endpoint(data_dir=self._folder, environment={})) as client:
            following = Following(client, self.board, self._clock, self.screen.happened)
            watching = asyncio.create_task(following.run())
            course = Course(
                client,
                self.board,
                following,
                self._clock,
                self.screen.headline,
                self.screen.detail,
                self._examples,
            )
            try:
                return await course.run()
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    async def _refresh(self) -> None:
        while True:
            self.screen.refresh()
            await asyncio.sleep(REFRESH_SECONDS)


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, readable=False),
    default=CLONE / ".tidegate" / "demo",
    show_default=True,
    help="The folder for all that the demo writes; made afresh.",
)
@click.option(
    "--examples",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=CLONE / "examples",
    help="The folder with the manifests.",
)
def main(data_dir: Path, examples: Path) -> None:
    """Start everything on this machine, show real jobs for half a minute, and stop everything."""
    folder, console = data_dir.resolve(), make_console()
    try:
        make_fresh(folder)
    except Unusable as error:
        _say(console, f"The demo cannot start: {error}")
        sys.exit(FAILED)
    sys.exit(_perform(Demo(folder, examples.resolve(), console), console, folder))


def _perform(demo: Demo, console: Console, folder: Path) -> int:
    """Run ``demo`` and say how it went; the exit code."""
    code = 0
    try:
        with demo.screen:
            findings = asyncio.run(demo.run())
        show_findings(console, demo.board, findings)
        code = FAILED if findings.problems else 0
    except Interrupted:
        _say(console, "The demo was interrupted.")
        code = INTERRUPTED
    except (CannotStart, DemoFailed, ClientError, Unreadable, OSError) as error:
        _say(console, f"The demo failed: {error}")
        code = FAILED
    left = left_behind(folder)
    _say(console, *(f"still running: {process}" for process in left))
    if code == FAILED or left:
        _say(console, f"The logs of the services are in {folder / 'logs'}.")
        return code or FAILED
    _say(console, "Everything was stopped; no process is left.")
    if code == 0:
        _say(console, f"All that was written is in {folder}.", "")
        show_next(console, _program())
    return code


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _program() -> str:
    """How to call the program `tidegate` from the folder that people are in."""
    program = Path(sys.executable).with_name("tidegate")
    try:
        return str(program.relative_to(Path.cwd()))
    except ValueError:
        return str(program)


if __name__ == "__main__":
    main()
