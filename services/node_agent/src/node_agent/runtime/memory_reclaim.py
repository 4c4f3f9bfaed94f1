"""Takes memory back from groups before they meet their limit, so that none of their tasks has to wait for it there.

The kernel does the work for whoever asks (``memory.reclaim`` of cgroup version 2) and lets him wait: so this asks in a thread.
"""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress

from node_agent.domain.colocation.groups import MEMORY_CURRENT, MEMORY_RECLAIM
from node_agent.domain.colocation.memory_protection import Watermark
from node_agent.runtime.knob_files import KnobFiles, NotKnown

_log = logging.getLogger(__name__)


class MemoryReclaim:
    """One round at a time; a kernel that cannot do it is told of once, and not asked again."""

    def __init__(self, files: KnobFiles) -> None:
        self._files = files
        self._working: threading.Thread | None = None
        self._lacking = ""

    def start(self, marks: Mapping[str, Watermark]) -> None:
        """Begin a round over the groups of ``marks``, by folder, unless one is going on."""
        if marks and not self._lacking and (self._working is None or not self._working.is_alive()):
            self._working = threading.Thread(target=self.round, args=(marks,), name="memory_reclaim", daemon=True)
            self._working.start()

    def round(self, marks: Mapping[str, Watermark]) -> None:
        """Take back what is above its mark, and a little more."""
        for folder, mark in marks.items():
            with suppress(OSError, ValueError):  # it is gone, or had not so much to give
                try:
                    excess = int(self._files.read(folder, MEMORY_CURRENT) or 0) - mark.at_bytes
                    if excess >= 0:
                        self._files.write(folder, MEMORY_RECLAIM, str(excess + mark.down_by_bytes))
                except NotKnown as error:
                    self._lacking = str(error)
                    _log.warning("memory_not_reclaimed", extra={"error": self._lacking})
                    return
