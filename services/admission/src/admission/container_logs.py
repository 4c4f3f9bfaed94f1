"""What containers wrote: asked of the agent of the node where the pod ran."""

import asyncio
from collections.abc import AsyncIterator

from admission.view import View
from bus import Bus, BusError
from kube import Key, Object
from tidegate import subjects
from tidegate.api.v1 import api_pb2
from tidegate.node.v1 import node_pb2

PAUSE_SECONDS = 0.2
SIMULATED = "tidegate.dev/simulated"


class NoLogs(Exception):
    """There is nothing to read; the text says why."""


class ContainerLogs:
    """Reads logs piece by piece, so that a slow reader costs nobody memory."""

    def __init__(self, bus: Bus, view: View) -> None:
        self._bus, self._view = bus, view

    async def read(self, key: Key, wanted: api_pb2.LogsRequest) -> AsyncIterator[bytes]:
        """What is ``wanted`` of the logs of a pod; to be followed until the container has ended.

        Raises LookupError when the pod or container does not exist, NoLogs when it has not run.
        """
        pod = self._pod(key)
        name = self._container(pod, wanted.container)
        node = pod.spec.get("nodeName")
        if not node:
            raise NoLogs(f"{key} has not been placed on a node yet; `tidegate explain pod/{key.name}` says why")
        found = self._view.store.get(Key("Node", "", str(node)))
        if found is not None and SIMULATED in found.annotations:
            raise NoLogs(f"{key} runs on the simulated node {node}, which runs no containers and writes no logs")
        offset = -1
        while True:
            request = node_pb2.LogRequest(
                pod_uid=pod.uid,
                container=name,
                tail=wanted.tail or -1,
                offset=offset,
                previous=wanted.previous,
                since_ms=wanted.since_ms,
                timestamps=wanted.timestamps,
            )
            reply = await self._ask(str(node), request)
            if reply.data:
                yield reply.data
            offset = reply.next_offset
            if not reply.data and (not wanted.follow or reply.ended):
                return
            if not reply.data:
                await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, node: str, request: node_pb2.LogRequest) -> node_pb2.LogReply:
        try:
            answer = await self._bus.request(subjects.node_logs(node), request.SerializeToString())
        except BusError as error:
            raise NoLogs(f"the agent of node {node} does not answer: {error}") from None
        reply = node_pb2.LogReply.FromString(answer)
        if reply.error:
            raise NoLogs(reply.error)
        return reply

    def _pod(self, key: Key) -> Object:
        pod = self._view.store.get(key)
        if pod is None:
            raise LookupError(f"{key} not found")
        return pod

    def _container(self, pod: Object, wanted: str) -> str:
        spec = pod.spec
        names = [one["name"] for one in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))]
        if not wanted:
            return str(names[0])
        if wanted not in names:
            raise LookupError(f"{pod.key} has no container {wanted!r}; it has {', '.join(names)}")
        return wanted
