"""Ending the processes of a container."""

import asyncio
import signal

from node_agent.domain.records import Process
from node_agent.runtime.cgroups import Cgroups
from node_agent.runtime.processes import is_alive, kill_session, signal_group, signal_process

POD_MARK = "TIDEGATE_POD_UID"
"""The variable by which a process is known to be of a pod."""

_TRY_AGAIN_SECONDS = 0.02


def send(kill: bool, process: Process, cgroups: Cgroups, group: str) -> None:
    """SIGTERM to the container's first process; with ``kill`` SIGKILL to its process group and all of its control group.

    Only the first process is asked, as in a container of Kubernetes: it may need its children to end in good order. What
    it leaves behind is ended by the shim, whose descendant it is.
    """
    if kill:
        signal_group(process.pid, process.started, signal.SIGKILL)
        cgroups.kill(group)
    else:
        signal_process(process.pid, process.started, signal.SIGTERM)


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
