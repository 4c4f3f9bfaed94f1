"""What people see while the demo goes on: lines as things happen and, on a terminal, a table that moves with them."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidegate_cli.demo.board import BAD_END, GOOD_END, Board, JobView, PodView, cpus

_PLAIN_WIDTH = 120
_BAR = 32
_TIME_WIDTH = 8


class Screen:
    """Writes to ``console``; without a terminal only lines."""

    def __init__(self, console: Console, board: Board, clock: Callable[[], float]) -> None:
        self.console, self._board, self._clock = console, board, clock
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._fine = console.encoding.startswith("utf")

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def happened(self, line: str) -> None:
        """Something that the system did."""
        self._write(self._now(), line, "")

    def headline(self, line: str) -> None:
        """Something that the demo does."""
        self._write(self._now(), f"> {line}", "bold cyan")

    def detail(self, line: str) -> None:
        """A line of an answer."""
        self._write("", f"| {line}", "yellow")

    def refresh(self) -> None:
        """Show the board as it stands."""
        if self._live:
            self._live.update(Group(self._jobs(), self._node()), refresh=True)

    def _write(self, when: str, line: str, style: str) -> None:
        if self._live:
            row = Table.grid(padding=(0, 2))
            row.add_column(width=_TIME_WIDTH)
            row.add_row(when, Text(line, style))
            self.console.print(row)
        else:  # whoever reads a file or a log wants one line for one thing
            self.console.print(Text(f"{when:{_TIME_WIDTH}}  {line}"), soft_wrap=True)
        self.refresh()

    def _now(self) -> str:
        return f"{self._clock():{_TIME_WIDTH - 2}.1f} s"

    def _jobs(self) -> Table:
        table = Table(box=None, padding=(0, 2), header_style="dim")
        for title in ("job", "kind", "pods", "phase"):
            table.add_column(title)
        table.add_column("pods run after", justify="right")
        for job in self._board.jobs.values():
            table.add_row(job.act.name, job.act.kind, self._dots(job), _phase(job), until_running(job))
        return table

    def _dots(self, job: JobView) -> Text:
        dots = Text()
        for name in sorted(job.pods):
            dots.append(*self._dot(job.pods[name]))
        return dots

    def _dot(self, pod: PodView) -> tuple[str, str]:
        letter, style = {
            "Running": ("●", "green"),
            "Succeeded": ("✓", "blue"),
            "Failed": ("✗", "red"),
        }.get(pod.phase, ("◐", "yellow") if pod.bound else ("○", "dim"))
        return letter if self._fine else pod.phase[:1], style

    def _node(self) -> Text:
        board = self._board
        if not board.cpu_milli:
            return Text("  the system is starting", style="dim")
        filled = min(_BAR, _BAR * board.taken_milli // board.cpu_milli)
        full, empty = ("█", "░") if self._fine else ("#", ".")
        bar = full * filled + empty * (_BAR - filled)
        return Text(f"  {board.node}  {bar}  {cpus(board.taken_milli)} of {cpus(board.cpu_milli)} CPUs given away")


def make_console() -> Console:
    """Standard output; wide enough for the closing table where it is no terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def until_running(job: JobView) -> str:
    """How long after it was handed in all pods of a job ran."""
    return f"{job.running_at - job.handed_in_at:.1f} s" if job.running_at >= 0 else ""


def _phase(job: JobView) -> Text:
    style = "green" if job.phase in GOOD_END else "red" if job.phase in BAD_END else ""
    return Text(job.phase, style=style)
