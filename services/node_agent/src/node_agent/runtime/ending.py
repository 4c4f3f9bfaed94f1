"""Ending the processes of a container."""

import asyncio
import signal

from node_agent.domain.records import Process
from node_agent.runtime.cgroups import Cgroups
from node_agent.runtime.processes import is_alive, kill_session, signal_group

POD_MARK = "TIDEGATE_POD_UID"
"""The variable by which a process is known to be of a pod."""

_TRY_AGAIN_SECONDS = 0.02


def send(kill: bool, process: Process, cgroups: Cgroups, group: str) -> None:
    """SIGTERM to the container's process group; with ``kill`` SIGKILL to it and to all of its control group.

    What has left both is ended by the shim, whose descendant it is, as soon as the container's first process is gone.
    """
    signal_group(process.pid, process.started, signal.SIGKILL if kill else signal.SIGTERM)
    if kill:
        cgroups.kill(group)


async def end_all(process: Process | None, uid: str, cgroups: Cgroups, group: str) -> None:
    """Kill a container of the pod ``uid`` that has no shim any more, and wait until nothing of it is left."""
    while True:
        left = cgroups.kill(group)
        if process is not None:
            signal_group(process.pid, process.started, signal.SIGKILL)
            left += kill_session(process.pid, process.started, f"{POD_MARK}={uid}")
            left += is_alive(process.pid, process.started)
        if not left:
            return
        await asyncio.sleep(_TRY_AGAIN_SECONDS)
