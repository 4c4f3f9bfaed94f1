"""The agent's side of the bus: what is assigned to the node comes in, reports and log pieces go out."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import orjson

from bus import Bus, BusError
from kube import Manifest
from node_agent.agent import Agent
from node_agent.inventory.machine import Devices, Inventory
from node_agent.ports import Assignment, HostNames, Report
from node_agent.runtime.log_pieces import LogReader
from node_agent.runtime.logs import previous_of
from node_agent.settings import AgentSettings
from tidegate import subjects
from tidegate.node.v1 import node_pb2

HEARTBEAT_SECONDS = 5.0
ANSWER_SECONDS = 3.0
"""How long the gateway's answer is waited for: one that has not come by then is likely lost, and the report is sent again."""


class BusUpstream:
    """Says things to the cluster gateway and asks it for Secrets.

    ``identity`` is a file with a token that shows on which node this is; kubelets write a new one before it ends.
    """

    def __init__(self, bus: Bus, node: str, identity: Path | None = None) -> None:
        self._bus, self._node, self._identity = bus, node, identity

    async def report(self, report: Report) -> None:
        """Return once the gateway has stored it; raises BusError when that is not known."""
        message = node_pb2.Report(node=report.node, gone=report.gone)
        for pod in report.pods:
            message.pods.add(uid=pod.uid, namespace=pod.namespace, name=pod.name, status=orjson.dumps(pod.status))
        if isinstance(report.inventory, Devices):
            message.devices = orjson.dumps(report.inventory.topology())
        elif report.inventory is not None:
            message.node_status = orjson.dumps(_node_status(report.inventory))
            message.node_metadata = orjson.dumps(_node_metadata(report.inventory))
        if report.usage:
            message.usage = orjson.dumps([asdict(sample) for sample in report.usage])
        if report.more_usage is not None:
            message.more_usage = orjson.dumps(report.more_usage)
        if report.evictions is not None:
            message.evictions = orjson.dumps([asdict(wish) for wish in report.evictions])
        said = (message.pods, message.gone, message.node_status, message.usage, message.devices, message.evictions)
        if any(said):
            if self._identity is not None:
                message.token = self._identity.read_text().strip()
            answer = await self._bus.request(
                subjects.report(self._node), message.SerializeToString(), timeout=ANSWER_SECONDS
            )
            reply = node_pb2.ReportReply.FromString(answer)
            if reply.error:
                raise BusError(reply.error)

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """The values of a Secret that a pod of this node names."""
        request = node_pb2.SecretRequest(node=self._node, namespace=namespace, name=name)
        reply = node_pb2.SecretReply.FromString(await self._bus.request(subjects.SECRET, request.SerializeToString()))
        if not reply.found:
            raise LookupError(f"Secret {namespace}/{name} not found")
        return dict(reply.data)


class Assigned(Protocol):
    """What of an agent an assignment is for."""

    @property
    def settings(self) -> AgentSettings: ...

    def assign(self, assignment: Assignment) -> None: ...


async def follow_assignments(bus: Bus, agent: Assigned) -> None:
    """Give the agent every new assignment of its node, for ever."""
    node = agent.settings.node
    async for payload in bus.values(subjects.assignment(node)):
        message = node_pb2.Assignment.FromString(payload)
        if message.node == node:
            agent.assign(_assignment(message))


async def beat(bus: Bus, node: str) -> None:
    """Show that the agent lives, for ever."""
    while True:
        await bus.publish(subjects.heartbeat(node), node.encode())
        await asyncio.sleep(HEARTBEAT_SECONDS)


async def serve_logs(bus: Bus, agent: Agent) -> None:
    """Answer requests for pieces of logs, for ever."""

    async def answer(payload: bytes) -> bytes:
        return log_piece(agent, node_pb2.LogRequest.FromString(payload)).SerializeToString()

    serving = await bus.serve(subjects.node_logs(agent.settings.node), answer)
    try:
        await asyncio.Event().wait()
    finally:
        await serving.stop()


class Writers(Protocol):
    """What of an agent a reader of logs needs."""

    def has_ended(self, uid: str, container: str) -> bool: ...

    def log_file(self, uid: str, container: str) -> Path: ...


def log_piece(agent: Writers, request: node_pb2.LogRequest) -> node_pb2.LogReply:
    """A piece of what a container wrote, and where the next one begins."""
    try:
        file = agent.log_file(request.pod_uid, request.container)
        ended = agent.has_ended(request.pod_uid, request.container)
        if request.previous:
            file, ended = previous_of(file), True
            if not file.exists():
                raise LookupError(f"container {request.container!r} of pod {request.pod_uid} has not run before")
    except LookupError as error:
        return node_pb2.LogReply(error=str(error.args[0]))
    if not file.exists():
        return node_pb2.LogReply(next_offset=max(0, request.offset), ended=ended)
    reader = LogReader(file, request.tail, request.since_ms, request.timestamps)
    found = reader.first() if request.offset < 0 else reader.after(request.offset)
    return node_pb2.LogReply(data=found.data, next_offset=found.position, ended=ended and not found.data)


def _assignment(message: node_pb2.Assignment) -> Assignment:
    hosts: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for entry in message.hosts:
        hosts.setdefault(entry.namespace, []).append((entry.address, tuple(entry.names)))
    by_namespace: dict[str, HostNames] = {namespace: tuple(entries) for namespace, entries in hosts.items()}
    maps: dict[str, Mapping[str, str]] = {
        name: orjson.loads(body).get("data") or {} for name, body in message.config_maps.items()
    }
    pods = tuple(orjson.loads(pod) for pod in message.pods)
    slo, node_object = (orjson.loads(part) if part else {} for part in (message.node_slo, message.node_object))
    return Assignment(message.node, message.revision, pods, maps, by_namespace, slo, node_object)


def _node_status(inventory: Inventory) -> Manifest:
    ready = {"type": "Ready", "status": "True", "reason": "AgentReady", "message": "the node's agent runs pods"}
    return {**inventory.node_status(), "conditions": [ready]}


def _node_metadata(inventory: Inventory) -> Manifest:
    topology = orjson.dumps(inventory.devices.topology()).decode()
    annotations = {**inventory.annotations, "tidegate.dev/inventory": topology}
    return {"labels": dict(inventory.labels), "annotations": annotations}
