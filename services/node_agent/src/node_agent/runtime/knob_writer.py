"""Puts rules in force: writes what is not so already, and writes again what somebody else has changed."""

import logging
from collections.abc import Mapping
from contextlib import suppress

from node_agent.runtime.guard import Raw
from node_agent.runtime.knob_files import KnobFiles, NotKnown

_log = logging.getLogger(__name__)

Texts = Mapping[str, Mapping[str, str]]
"""What is to stand in the files of folders."""

Change = tuple[str, str, str]
"""Folder, file, text."""


class KnobWriter:
    """Remembers what it wrote. ``refused`` are the files that could not be written, with the reason."""

    def __init__(self, files: KnobFiles) -> None:
        self.files = files
        self._written: dict[tuple[str, str], str] = {}
        self._lacking: set[tuple[str, str]] = set()
        self._last: Texts = {}
        self.refused: dict[tuple[str, str], str] = {}

    def write(self, wanted: Texts, look: bool = False) -> int:
        """Bring all files of ``wanted`` to what they are to say; returns how many were written.

        With ``look`` each is read first: a kubelet, say, may have written there since. What was refused is tried again then, and
        whenever something else is wanted.
        """
        changed = [folder for folder, files in wanted.items() if files != self._last.get(folder)]
        if not (look or changed or wanted.keys() != self._last.keys()):
            return 0
        pending = [
            (folder, name, text)
            for folder in (wanted if look or self.refused else changed)
            for name, text in wanted[folder].items()
            if not (self._stands(folder, name, text) if look else self._written.get((folder, name)) == text)
        ]
        self._forget_others(wanted)
        count, refused = 0, {}
        while pending:
            # A group may hold no less than those below it, and these no more than it: what is refused at first may be
            # taken once the others stand.
            tried = [(change, self._try(change)) for change in pending]
            failed = [change for change, error in tried if error]
            count += len(pending) - len(failed)
            if len(failed) == len(pending):
                refused = {change[:2]: error for change, error in tried}
                break
            pending = failed
        self._note(refused)
        return count

    def _forget_others(self, wanted: Texts) -> None:
        """What is not wanted any more is written again when it is."""
        before, self._last = self._last, wanted
        for folder, files in before.items():
            if files is not wanted.get(folder):
                for name in files.keys() - wanted.get(folder, {}).keys():
                    self._written.pop((folder, name), None)
                    self._lacking.discard((folder, name))

    def tasks(self, folder: str) -> list[int]:
        """The processes of a group; none where it is gone."""
        try:
            return self.files.tasks(folder)
        except OSError:
            return []

    def put(self, folder: str, files: Mapping[str, str]) -> None:
        """Write the files of one new group; what is refused is tried again with the others."""
        for name, text in files.items():
            self._try((folder, name, text))

    def says(self, folder: str, name: str) -> str | None:
        """What stands in a file, as it would be written; None where that cannot be said."""
        try:
            return self.files.read(folder, name)
        except (OSError, ValueError):
            return None

    def raw(self, wanted: Texts) -> list[Raw]:
        """The writes by which all files of ``wanted`` come to say it, those of a group before those of groups in it."""
        found: list[Raw] = []
        for folder, files in sorted(wanted.items()):
            for name, text in files.items():
                with suppress(OSError, NotKnown):
                    found += self.files.raw(folder, name, text)
        return found

    def _stands(self, folder: str, name: str, text: str) -> bool:
        try:
            found = None if (folder, name) in self._lacking else self.files.read(folder, name)
        except (OSError, ValueError):
            return False
        return self._written.get((folder, name)) == text if found is None else found == text

    def _try(self, change: Change) -> str:
        """Write one file; why it could not be written."""
        folder, name, text = change
        try:
            self.files.write(folder, name, text)
        except FileNotFoundError:  # the pod is gone, and its group with it
            return ""
        except NotKnown as error:
            self._written[folder, name] = text  # not tried again before it is to be something else
            self._lacking.add((folder, name))
            return str(error)
        except OSError as error:
            return f"{name}={text}: {error.strerror or error}"
        except (LookupError, ValueError) as error:  # what stands there, or is to, is nothing that could be read
            return f"{name}={text}: {error!r}"
        self._written[folder, name] = text
        return ""

    def _note(self, refused: dict[tuple[str, str], str]) -> None:
        for (folder, name), error in refused.items():
            if self.refused.get((folder, name)) != error:
                _log.warning("rule_not_in_force", extra={"group": folder, "file": name, "error": error})
        self.refused = refused
