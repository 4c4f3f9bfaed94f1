"""What one turn of the gateway has to answer once its change set is stored."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube import Outcome
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2


@dataclass(slots=True)
class Batch:
    """Replies that wait for the change set, and the outcomes that go into it."""

    replies: list[tuple["asyncio.Future[gateway_pb2.WriteReply]", gateway_pb2.WriteReply]] = field(default_factory=list)
    reports: list[tuple["asyncio.Future[node_pb2.ReportReply]", node_pb2.ReportReply]] = field(default_factory=list)
    enacted: list["asyncio.Future[None]"] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """The ids of the requests that are done with it."""
    cause: Mapping[str, str] = field(default_factory=dict)
    """The trace of the newest of these that had one."""

    def answer(self, revision: int) -> None:
        """All of it is stored up to ``revision``."""
        for write_reply, written in self.replies:
            written.revision = revision if not written.error else 0
            if not write_reply.done():
                write_reply.set_result(written)
        for report_reply, stored in self.reports:
            stored.revision = revision
            if not report_reply.done():
                report_reply.set_result(stored)
        for enacted in self.enacted:
            if not enacted.done():
                enacted.set_result(None)

    def taken_in(self) -> None:
        """What was seen is part of a change set that is not whole yet: those who brought it may bring more."""
        enacted, self.enacted = self.enacted, []
        for one in enacted:
            if not one.done():
                one.set_result(None)

    def fail(self, error: Exception) -> None:
        """Nobody will know whether it was stored: let those who wait ask again."""
        waiting: list[asyncio.Future[Any]] = [reply for reply, _ in self.replies]
        waiting += [reply for reply, _ in self.reports]
        for reply in (*waiting, *self.enacted):
            if not reply.done():
                reply.set_exception(error)
