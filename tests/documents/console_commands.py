"""The commands of the documents: the lines behind `$` in blocks that are marked ``console``.

Those for a cluster are marked ``console kubernetes``; they are run in tests/kubernetes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = r"^```{}\n(.*?)^```"
HERE, ON_A_CLUSTER = "console", "console kubernetes"
UP = re.compile(r"\btidegate up\b(?!.*(--detach| -d\b))")


@dataclass(frozen=True, slots=True)
class Command:
    """One command; ``place`` is its document and line."""

    place: str
    text: str

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of a ``make``; empty for anything else."""
        words = self.text.split()
        return tuple(words[1:]) if words[0] == "make" else ()

    @property
    def runnable(self) -> str:
        """The command as a test runs it: a system that would hold the terminal is started in the background."""
        return UP.sub("tidegate up --detach", self.text)


def commands_in(file: Path, name: str, marked: str = HERE) -> Iterator[Command]:
    """All commands of a document that are marked so, in order."""
    text = file.read_text()
    for block in re.finditer(BLOCK.format(marked), text, re.MULTILINE | re.DOTALL):
        first = text.count("\n", 0, block.start()) + 2
        for number, line in enumerate(block[1].splitlines(), first):
            if line.startswith("$ "):
                yield Command(f"{name}:{number}", line.removeprefix("$ ").strip())
