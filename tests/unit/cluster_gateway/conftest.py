"""A gateway on the bus in memory under virtual time, and all who speak with it."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from bus import MemoryBus
from chassis import LoopClock
from chassis.virtual_time import VirtualLoop
from cluster_gateway.domain.simulated_nodes import SIMULATED, SimulationSettings
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from kube import Decision, Key, Manifest, Object, Outcome, Store, key_of
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.blobs import BlobWriter
from tidegate.codec.decisions import CommitHead, encode_commit, split
from tidegate.fact.v1 import fact_pb2
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2
from tidegate.services import DECIDERS

QUIET = GatewaySettings(services=DECIDERS, simulation=SimulationSettings(pod_start_ms=None))


class Rig:
    """``settings`` are those of every gateway that is started; the bus and the kept Secrets outlive them."""

    def __init__(self, settings: GatewaySettings = QUIET) -> None:
        self.loop = VirtualLoop()
        asyncio.set_event_loop(self.loop)
        self.bus, self.clock, self.secrets, self.settings = MemoryBus(), LoopClock(), MemorySecrets(), settings
        self._uids, self._requests = itertools.count(1), itertools.count(1)
        self.start()

    # --- its life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.gateway = Gateway(self.bus, self.clock, self.settings, self.secrets, lambda: f"uid-{next(self._uids)}")
        self.task = self.loop.create_task(self.gateway.run())
        self.loop.settle()

    def kill(self) -> None:
        self.task.cancel()
        self.loop.settle()

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()
        asyncio.set_event_loop(None)

    # --- what is said to it --------------------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        task = self.loop.create_task(work)
        self.loop.settle()
        if self.task.done() and not self.task.cancelled():
            self.task.result()
        return task.result()

    def request(
        self, *writes: gateway_pb2.Write, blobs: Sequence[bytes] = (), id: str = ""
    ) -> gateway_pb2.WriteRequest:
        return gateway_pb2.WriteRequest(
            id=id or f"request-{next(self._requests)}", actor="user", writes=writes, blobs=blobs
        )

    def ask(self, request: gateway_pb2.WriteRequest) -> gateway_pb2.WriteReply:
        answer = self.do(self.bus.request(subjects.WRITE, request.SerializeToString()))
        return gateway_pb2.WriteReply.FromString(answer)

    def write(
        self, *manifests: Manifest, expected: int = 0, force: bool = False, id: str = ""
    ) -> gateway_pb2.WriteReply:
        """Store objects; ``expected`` is the revision that the writer saw of each, 0 for new ones."""
        return self.ask(self.storing(*manifests, expected=expected, force=force, id=id))

    def storing(
        self, *manifests: Manifest, expected: int = 0, force: bool = False, id: str = ""
    ) -> gateway_pb2.WriteRequest:
        blobs: list[bytes] = []
        writer, writes = BlobWriter(blobs), []
        for manifest in manifests:
            key, (metadata, body, status) = key_of(manifest), split(manifest)
            writes.append(
                gateway_pb2.Write(
                    kind=key.kind,
                    namespace=key.namespace,
                    name=key.name,
                    metadata=writer.put(metadata),
                    body=writer.put(body),
                    status=writer.put(status),
                    expected_revision=expected,
                    force=force,
                )
            )
        return self.request(*writes, blobs=blobs, id=id)

    def delete(self, key: Key, grace: int | None = None) -> gateway_pb2.WriteReply:
        write = gateway_pb2.Write(
            delete=True, force=True, kind=key.kind, namespace=key.namespace, name=key.name, grace_seconds=grace
        )
        return self.ask(self.request(write))

    def decide(
        self, service: str, *decisions: Decision, on: int | None = None, epoch: int = 1, started: bool = False
    ) -> list[Outcome]:
        """Commit decisions, by default made on what is so now; what came of them, if the gateway lives."""
        head = CommitHead(service, epoch, self.revision if on is None else on, self.loop.now_ms, leader_started=started)
        log = self.bus.log(subjects.decisions(service))
        count = len(log.entries(0)) + 1
        named = [(f"{service}/{count}/{number}", decision) for number, decision in enumerate(decisions, 1)]
        self.do(log.append(encode_commit(head, named), expected=count - 1, message_id=f"{count}"))
        ids = {decision_id for decision_id, _ in named}
        return [outcome for outcome in self.outcomes() if outcome.decision_id in ids]

    def report(self, node: str, **parts: Any) -> node_pb2.ReportReply:
        """``pods`` are (Object, status); ``status`` and ``metadata`` are the node's own."""
        pods = [
            node_pb2.PodReport(uid=pod.uid, namespace=pod.namespace, name=pod.name, status=orjson.dumps(status))
            for pod, status in parts.get("pods", ())
        ]
        message = node_pb2.Report(node=node, pods=pods, gone=parts.get("gone", ()))
        if "status" in parts:
            message.node_status = orjson.dumps(parts["status"])
        if "metadata" in parts:
            message.node_metadata = orjson.dumps(parts["metadata"])
        answer = self.do(self.bus.request(subjects.report(node), message.SerializeToString()))
        return node_pb2.ReportReply.FromString(answer)

    def enact(self, action: Callable[[Any], object]) -> None:
        self.do(self.gateway.enact(action))

    def node(self, name: str, *, simulated: bool = False, cpu: str = "8") -> None:
        ready = [{"type": "Ready", "status": "True"}]
        metadata = {"annotations": {SIMULATED: "true"}} if simulated else {}
        info = {} if simulated else {"nodeInfo": {"containerRuntimeVersion": "process://1"}}
        status = {"allocatable": {"cpu": cpu}, "conditions": ready, **info}
        self.report(name, metadata=metadata, status=status)

    # --- what is so ----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> list[Any]:
        return self.bus.log(subjects.FACTS).entries(0)

    @property
    def revision(self) -> int:
        return len(self.entries)

    def folded(self) -> Store:
        """What a reader of the log knows; the gateway's own state must be the same."""
        store = Store()
        for entry in self.entries:
            facts.fold(store, fact_pb2.ChangeSet.FromString(entry.payload), entry.sequence)
        own = self.gateway.local.store.objects
        assert {key: _parts(item) for key, item in store.objects.items()} == {k: _parts(i) for k, i in own.items()}
        return store

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        return self.folded().get(Key(kind, namespace, name))

    def pod(self, name: str, namespace: str = "default") -> Object:
        found = self.get("Pod", name, namespace)
        assert found is not None, f"there is no pod {name}"
        return found

    def names(self, kind: str) -> list[str]:
        return sorted(key.name for key in self.folded().of_kind(kind))

    def outcomes(self) -> list[Outcome]:
        messages = (fact_pb2.ChangeSet.FromString(entry.payload) for entry in self.entries)
        return [outcome for message in messages for outcome in facts.outcomes(message)]

    def parked(self) -> list[Any]:
        return self.do(self.bus.parked())  # type: ignore[no-any-return]


def _parts(item: Object) -> tuple[Any, ...]:
    return item.uid, item.metadata, item.body, item.status, item.revision, item.spec_revision


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    """A rig with settings of its own: ``make_rig(snapshot_entries=3)``."""
    made: list[Rig] = []

    def make(simulation: SimulationSettings | None = None, **settings: Any) -> Rig:
        given = replace(QUIET, **settings)
        made.append(Rig(given if simulation is None else replace(given, simulation=simulation)))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()
