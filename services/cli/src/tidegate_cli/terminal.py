"""What is written for people: colours, on a terminal only."""

import os
import re
import sys
from collections.abc import Iterator

import click

_GREEN = "Running|Ready|Active|Succeeded|Completed|Complete|Bound|Open|created|resumed|True|Placed"
_YELLOW = "Pending|Waiting|Inqueue|ContainerCreating|Terminating|Suspended|Aborted|configured|suspended|NotLetIn|Gated|Closing"
_RED = "Failed|Error|NotReady|Unknown|CrashLoopBackOff|OOMKilled|Evicted|Terminated|refused|Closed|deleted"
_COLOURS = {
    word: colour
    for colour, words in (("green", _GREEN), ("red", _RED), ("yellow", _YELLOW))
    for word in words.split("|")
}
_CELL = re.compile(rf"(?<=\s)({'|'.join(sorted(_COLOURS, key=len, reverse=True))})(?=\s\s|\n|$)")


def is_terminal() -> bool:
    """Whether standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def say(text: str) -> None:
    """Write a line or a table, with the states of things in colour where colours are shown."""
    click.echo(_CELL.sub(_painted, text) if is_terminal() else text)


def say_pieces(pieces: Iterator[bytes]) -> None:
    """Write bytes as they are and as they come."""
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _painted(found: "re.Match[str]") -> str:
    return click.style(found[1], fg=_COLOURS[found[1]])
