"""What the demo says at its end: a table of what was shown, and what to try next."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate_cli.demo.board import Board
from tidegate_cli.demo.course import Findings
from tidegate_cli.demo.screen import until_running

_NEXT = (
    ("{tidegate} up --detach --inventory examples/8-cpus.inventory", "start it for yourself"),
    ("{tidegate} apply -f examples/ring-allreduce.yaml", "hand in a job; examples/ has one of every kind"),
    ("{tidegate} get jobs,pods", "see how it is doing"),
    ("{tidegate} logs job/ring-allreduce -f", "read what it writes"),
    ("{tidegate} explain job/ring-allreduce", "ask why it waits, or where it went"),
    ("{tidegate} down", "stop everything"),
)


def show_findings(console: Console, board: Board, findings: Findings) -> None:
    """The table of the jobs, the explanation of the wait, and the problems if there are any."""
    table = Table(title="What was shown", title_justify="left", title_style="bold")
    for title in ("job", "kind", "pods", "phase", "running after", "what it proved"):
        table.add_column(title, overflow="fold")
    for job in board.jobs.values():
        act = job.act
        result = findings.results.get(act.name, "")
        table.add_row(act.name, act.kind, str(act.pods), job.phase, until_running(job), Text(result))
    console.print()
    console.print(table)
    console.print(Text("Why the gang had to wait, as `tidegate explain` says it:", style="bold"))
    for line in findings.explanation:
        console.print(Text(f"  {line}"), soft_wrap=True)
    for problem in findings.problems:
        console.print(Text(f"wrong: {problem}", style="bold red"), soft_wrap=True)


def show_next(console: Console, tidegate: str) -> None:
    """Commands that work, as they are."""
    console.print(Text("What to try next:", style="bold"))
    commands = [(command.format(tidegate=tidegate), why) for command, why in _NEXT]
    width = max(len(command) for command, _ in commands)
    for command, why in commands:
        console.print(Text(f"  {command:{width}}  # {why}"), soft_wrap=True)
