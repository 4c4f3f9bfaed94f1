"""Everything that asks the gateway for something: requests, reports, decisions, timers. It is taken in batches."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bus import Entry
from cluster_gateway.domain.cluster import Cluster
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2


@dataclass(frozen=True, slots=True)
class Request:
    """A user's write, waiting for its reply."""

    message: gateway_pb2.WriteRequest
    reply: "asyncio.Future[gateway_pb2.WriteReply]"


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node's report, waiting to be stored."""

    message: node_pb2.Report
    reply: "asyncio.Future[node_pb2.ReportReply]"


@dataclass(frozen=True, slots=True)
class Decided:
    """One commit of a deciding service."""

    service: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Enactment:
    """Something that the cluster side itself brings about: nodes that appear, what a node without an agent says."""

    action: Callable[[Cluster], None]
    reply: "asyncio.Future[None]"


Work = Request | NodeReport | Decided | Enactment


class WorkInbox:
    """What has come since the last batch was taken."""

    def __init__(self) -> None:
        self._work: deque[Work] = deque()
        self._wake = asyncio.Event()

    def put(self, work: Work) -> None:
        self._work.append(work)
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    async def wait(self) -> None:
        await self._wake.wait()

    def next(self) -> Work | None:
        """The oldest piece of work; None when there is none, and the next wait() waits."""
        if self._work:
            return self._work.popleft()
        self._wake.clear()
        return None
