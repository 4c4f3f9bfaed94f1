"""What a shim has written about its container."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from node_agent.domain.records import Process, Termination
from node_agent.runtime.folders import read_json


@dataclass(frozen=True, slots=True)
class ShimState:
    """The content of a state file: ``process`` is None until it is started, ``end`` until it has ended."""

    shim: int
    shim_started: int
    started_at: int
    process: Process | None
    end: Termination | None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "ShimState":
        """The state in ``data``; a shim's number of 0 says that it wrote none."""
        shim, shim_started = int(data.get("shim", 0)), int(data.get("shim_started", 0))
        started_at, pid = int(data.get("started_at", 0)), int(data.get("pid", 0))
        process = Process(pid, int(data["started"]), shim, shim_started) if pid else None
        end = None
        if "exit_code" in data:
            end = Termination(
                exit_code=int(data["exit_code"]),
                reason=str(data["reason"]),
                message=str(data["message"]),
                started_at=started_at,
                finished_at=int(data["finished_at"]),
                pid=pid,
            )
        return cls(shim, shim_started, started_at, process, end)


def read_state(file: Path) -> ShimState | None:
    """The state that a shim has written to ``file``; None when there is none."""
    data = read_json(file)
    return ShimState.read(data) if data else None
