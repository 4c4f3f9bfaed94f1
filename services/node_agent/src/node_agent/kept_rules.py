"""What outlives the agent of a node's rules: what its successor has to know, and what a guard gives back if there is none."""

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from node_agent.domain.colocation import archive
from node_agent.domain.colocation.core import Kept
from node_agent.domain.colocation.evictions import Asked
from node_agent.domain.colocation.groups import Group, Knobs
from node_agent.runtime.folders import read_json
from node_agent.runtime.guard import Guard, Raw, Run, Step, give_back, read, since_boot_ns

_log = logging.getLogger(__name__)

SAVE_EVERY_MS = 10_000
Marks = tuple[Mapping[Group, set[str]], Asked, tuple[Run, ...]]
First = Callable[[], Mapping[str, Mapping[str, str]]]
"""What stands in files, by folder, that nobody decides about."""


class KeptRules:
    """``rules.json`` for the successor, ``rules.back.json`` for the guard, both in ``folder``.

    What cannot be kept holds all the same: pods that serve are protected, and whoever comes next looks at the groups first.
    """

    def __init__(self, folder: Path, raw: Callable[[Mapping[str, Mapping[str, str]]], list[Raw]]) -> None:
        """``raw`` tells the writes by which files come to say something."""
        self._file, self._back = folder / "rules.json", folder / "rules.back.json"
        self._raw, self._guard = raw, Guard(self._back)
        self._saved: Marks | None = None
        self._saved_at = 0
        self._back_steps: list[Step] | None = None
        self._trouble = ""

    def load(self) -> tuple[Kept, Knobs]:
        """What was kept last; nothing where nothing was, or nothing that makes sense."""
        kept = read_json(self._file)
        try:
            return archive.decode(kept) if isinstance(kept, dict) else (Kept(), {})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _log.warning("kept_rules_unreadable", extra={"file": str(self._file), "error": repr(error)})
            return Kept(), {}

    def save(self, kept: Kept, written: Knobs, first: First, runs: tuple[Run, ...], now: int) -> None:
        """Keep it: at once, before anything is written, where other files are to be written; the rest now and then.

        ``runs`` are the commands that take back what stands in no file.
        """
        marks = ({group: set(files) for group, files in written.items()}, kept.asked, runs)
        if marks == self._saved and 0 <= now - self._saved_at < SAVE_EVERY_MS:
            return
        try:
            self._keep_back(first(), runs)
            _replace(self._file, archive.encode(kept, written))
        except OSError as error:
            self._saved = None
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("rules_not_kept", extra={"error": self._trouble})
        else:
            self._saved, self._saved_at, self._trouble = marks, now, ""

    def give_back(self) -> None:
        """Give back what was kept last, by whomever."""
        give_back(read(self._back))

    def forget(self) -> None:
        """All was given back: nobody has to know or do anything any more."""
        self._saved = self._back_steps = None
        for file in (self._back, self._file):
            file.unlink(missing_ok=True)
        self._guard.dismiss()

    def _keep_back(self, first: Mapping[str, Mapping[str, str]], runs: tuple[Run, ...]) -> None:
        is_there = self._show_life()  # also where there is no room for more
        steps: list[Step] = [*self._raw(first), *runs]
        if steps != self._back_steps or not is_there:
            _replace(self._back, steps)
            self._back_steps = steps
            self._show_life()
        if first or runs:
            self._guard.stand()

    def _show_life(self) -> bool:
        """Tell the guard that somebody keeps the rules; whether its file is there."""
        now = since_boot_ns()
        try:
            os.utime(self._back, ns=(now, now))
        except FileNotFoundError:
            return False
        return True


def _replace(file: Path, content: Any) -> None:
    """Write ``content`` as JSON, whole or not at all."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(json.dumps(content))
    draft.replace(file)
