"""The last look at the pods, kept in a file: what was used while no agent ran is in the next one's first sample."""

import json
from pathlib import Path

from node_agent.domain.usage import Look
from node_agent.runtime.folders import read_json

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class KeptLook:
    """The file, and the machine's boot of which it tells: CPU times begin anew with each."""

    def __init__(self, file: Path, boot_id: Path = _BOOT_ID) -> None:
        self._file, self._boot = file, boot_id.read_text().strip()

    def load(self) -> Look | None:
        """The look that was kept last; None when there is none of this boot, or none that makes sense."""
        kept = read_json(self._file)
        try:
            if not isinstance(kept, dict) or kept.get("boot") != self._boot:
                return None
            return Look(int(kept["at"]), {str(uid): int(spent) for uid, spent in kept["cpu_ns"].items()})
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def save(self, look: Look) -> None:
        """Keep ``look``, whole or not at all; raises OSError."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        draft = self._file.with_name(f"{self._file.name}.new")
        draft.write_text(json.dumps({"boot": self._boot, "at": look.at, "cpu_ns": look.cpu_ns}))
        draft.replace(self._file)
