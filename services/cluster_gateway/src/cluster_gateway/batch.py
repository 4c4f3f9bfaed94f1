"""What one turn of the gateway has to answer once its change set is stored."""

import asyncio
from dataclasses import dataclass, field

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
    positions: dict[str, int] = field(default_factory=dict)
