"""Answers of the API from what the parts of admission found."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from admission.applier import Result
from admission.callers import Sight
from admission.container_logs import SIMULATED
from admission.happening import Happening
from admission.view import View
from bus import Bus, BusError
from kube import KINDS, Key, Manifest, rfc3339
from kube.scheduling_pause import SWITCH, pause_of
from tidegate import subjects
from tidegate.api.v1 import api_pb2
from tidegate.gateway.v1 import gateway_pb2

MOST_TOLD = 3
"""So many of the objects that a service keeps aside are named; `explain` tells of each."""

SCHEDULER = "gang_scheduler"
ASK_SECONDS = 2.0
"""How long a service may take to answer that it is there."""


def object_name(key: Key) -> api_pb2.ObjectName:
    """A key as the API names objects."""
    return api_pb2.ObjectName(kind=key.kind, namespace=key.namespace, name=key.name)


def key_text(key: Key) -> str:
    """``job.batch.volcano.sh/ring``, as kubectl prints."""
    return f"{key.kind.lower()}/{key.name}"


def applied(result: Result) -> api_pb2.ApplyResult:
    """What became of one object of a request."""
    answer = api_pb2.ApplyResult(
        name=object_name(result.key), outcome=result.outcome, message=result.message, uid=result.uid
    )
    answer.warnings.extend(result.warnings)
    for error in result.errors:
        answer.errors.add(path=error.path, value="" if error.value is None else str(error.value), rule=error.rule)
    return answer


def fill_response(answer: api_pb2.ApplyResponse, results: Iterable[Result], revision: int) -> api_pb2.ApplyResponse:
    """``answer`` with what became of one request; ``revision`` holds all of it."""
    answer.results.extend(map(applied, results))
    answer.revision = revision
    return answer


def happened(item: Happening) -> api_pb2.Event:
    """One decision with its outcome."""
    return api_pb2.Event(
        at_ms=item.at_ms,
        source=item.source,
        name=item.name,
        reason=item.reason,
        message=item.message,
        about=object_name(item.about),
        applied=bool(item.applied),
        outcome={True: "applied", False: "refused", None: "pending"}[item.applied],
        revision=item.revision,
        id=item.id,
    )


def departed(key: Key, eviction: Happening) -> tuple[list[str], Manifest]:
    """Lines and data about a pod that is gone because it was evicted."""
    told = {"verdict": "Evicted", "rule": eviction.reason, "message": eviction.message, "atMs": eviction.at_ms}
    lines = [f"{key}: Evicted ({eviction.reason}) at {rfc3339(eviction.at_ms)}, and gone", f"  {eviction.message}"]
    return lines, {str(key): told | {"by": f"{eviction.about.namespace}/{eviction.about.name}"}}


@dataclass(frozen=True, slots=True)
class MyStatus:
    """The state of the whole system as admission sees it."""

    bus: Bus
    view: View
    services: tuple[str, ...]
    version: str
    sees: Sight
    """What whoever asks may see: the rest is not told of."""

    async def answer(self) -> api_pb2.StatusResponse:
        counts = Counter(key.kind for key in self.view.store.objects if self.sees is None or self.sees(key))
        known = {KINDS[kind].id: count for kind, count in sorted(counts.items()) if kind in KINDS}
        states = await asyncio.gather(self._gateway(), *map(self._service, self.services))
        myself = api_pb2.ServiceStatus(name="admission", ready=True, position=self.view.revision)
        return api_pb2.StatusResponse(
            revision=self.view.revision,
            version=self.version,
            objects=known,
            services=[*states[:1], myself, *states[1:], *self._agents()],
        )

    def _may_hear(self, about: str) -> bool:
        """Whether an object, given as ``str(key)``, may be told of."""
        kind, slash, rest = about.partition("/")
        namespace, inside, name = rest.partition("/")
        return self.sees is None or bool(slash and inside and self.sees(Key(kind, namespace, name)))

    async def _gateway(self) -> api_pb2.ServiceStatus:
        """The writer of facts, asked to write nothing."""
        nothing = gateway_pb2.WriteRequest().SerializeToString()
        try:
            answer = await self.bus.request(subjects.WRITE, nothing, timeout=ASK_SECONDS)
        except BusError as error:
            return api_pb2.ServiceStatus(
                name="cluster_gateway", message=f"nothing can change: {error}", position=self.view.revision
            )
        position = gateway_pb2.WriteReply.FromString(answer).revision
        return api_pb2.ServiceStatus(name="cluster_gateway", ready=True, position=position)

    def _agents(self) -> list[api_pb2.ServiceStatus]:
        """The agents of the nodes, all in one line; there is none where no node has said how it is."""
        store, silent, heard = self.view.store, [], 0
        for node in (store.objects[key] for key in sorted(store.of_kind("Node"))):
            ready = next((one for one in node.status.get("conditions") or () if one.get("type") == "Ready"), None)
            if ready is None or SIMULATED in node.annotations:
                continue
            heard += 1
            if ready.get("status") != "True":
                silent.append(f"{node.name}: {ready.get('message') or ready.get('reason') or 'not ready'}")
        if not heard:
            return []
        message = "; ".join(silent) or f"{heard} {'node' if heard == 1 else 'nodes'}"
        return [api_pb2.ServiceStatus(name="node_agent", ready=not silent, message=message)]

    async def _service(self, service: str) -> api_pb2.ServiceStatus:
        position = self.view.positions.get(service, 0)
        try:
            answer = await self.bus.request(subjects.question(service, "status"), b"", timeout=ASK_SECONDS)
        except BusError as error:
            return api_pb2.ServiceStatus(name=service, message=str(error), position=position)
        report = orjson.loads(answer)
        trouble, aside = report.get("trouble") or "", report.get("aside") or {}
        words = [trouble if self.sees is None else trouble.partition(":")[0]] if trouble else []
        if service == SCHEDULER and (pause := pause_of(self.view.store.get(SWITCH))) is not None:
            words.append(str(pause))
        told = [f"{about}: {aside[about]}" for about in aside if self._may_hear(about)][:MOST_TOLD]
        words += told
        words += [f"{len(aside)} set aside"] if len(aside) > min(MOST_TOLD, len(told)) else []
        return api_pb2.ServiceStatus(name=service, ready=not trouble, message="; ".join(words), position=position)
