"""The cluster gateway on each of its drivers, on a bus in memory: what is said to it, and what it says is so."""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from bus import MemoryBus
from chassis import SystemClock
from cluster_gateway.domain.simulated_nodes import SIMULATED, SimulationSettings
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from kube import Decision, Key, Manifest, Object, Outcome, Store
from kube.objects import from_manifest
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.codec.write_draft import WriteDraft
from tidegate.fact.v1 import fact_pb2
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

SETTINGS = GatewaySettings(simulation=SimulationSettings(pod_start_ms=None))
SECONDS = 60.0


class ProcessEnded(Exception):
    """The process of a gateway would have ended with this text."""


async def _run(gateway: Any) -> None:
    """A loop ends with the first SystemExit in it: here only the gateway does."""
    try:
        await gateway.run()
    except SystemExit as end:
        raise ProcessEnded(str(end)) from None


class Side(ABC):
    """A gateway and its cluster; objects of a test are in ``namespace``, its nodes have ``prefix`` before their names."""

    def __init__(self, number: int) -> None:
        self.bus, self.clock = MemoryBus(), SystemClock()
        self.namespace, self.prefix = f"t{number}", f"t{number}-"
        self._commits = itertools.count(1)
        self.tasks: list[asyncio.Task[None]] = []

    # --- its life ------------------------------------------------------------------------------------------------

    @abstractmethod
    def make_gateway(self, holder: str) -> Any:
        """A gateway of this driver that goes by the name ``holder``."""

    async def start(self, holder: str = "only") -> None:
        self.gateway = self.make_gateway(holder)
        self.tasks.append(asyncio.create_task(_run(self.gateway)))
        async with asyncio.timeout(SECONDS):
            await self.gateway.ready.wait()

    async def kill(self) -> None:
        """As a crash would: nothing is said any more, and nobody waits for what was begun."""
        task = self.tasks[-1]
        task.cancel()
        with suppress(asyncio.CancelledError, ProcessEnded):
            await task

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, ProcessEnded):
                await task

    # --- what is said to it --------------------------------------------------------------------------------------

    def key(self, kind: str, name: str) -> Key:
        return Key(kind, self.namespace, name)

    async def write(self, *manifests: Manifest, expected: int = 0) -> gateway_pb2.WriteReply:
        """Store objects; ``expected`` is the revision that the writer saw of each, 0 for new ones."""
        draft = WriteDraft()
        for manifest in manifests:
            draft.store(from_manifest(manifest), expected)
        return await self._ask(draft)

    async def delete(self, key: Key, uid: str = "") -> gateway_pb2.WriteReply:
        draft = WriteDraft()
        draft.delete(key, uid, None)
        return await self._ask(draft)

    async def measure(self, *manifests: Manifest) -> gateway_pb2.WriteReply:
        """Write as a service does that measures: whatever is there."""
        draft = WriteDraft()
        for manifest in manifests:
            draft.store(from_manifest(manifest), None)
        return await self._ask(draft, subjects.SAMPLES)

    async def credential(self, whose: str, name: str) -> dict[str, bytes] | None:
        """What the gateway answers of a Secret that a TriggerAuthentication names."""
        request = gateway_pb2.CredentialRequest(
            kind="TriggerAuthentication.keda.sh", namespace=self.namespace, name=whose, secret=name
        )
        answer = await self.bus.request(subjects.CREDENTIAL, request.SerializeToString(), timeout=SECONDS)
        reply = gateway_pb2.CredentialReply.FromString(answer)
        return dict(reply.data) if reply.found else None

    async def _ask(self, draft: WriteDraft, subject: str = subjects.WRITE) -> gateway_pb2.WriteReply:
        draft.request.id, draft.request.actor = f"request-{next(self._commits)}", "user"
        answer = await self.bus.request(subject, draft.request.SerializeToString(), timeout=SECONDS)
        return gateway_pb2.WriteReply.FromString(answer)

    async def commit(
        self, service: str, *decisions: Decision, on: int | None = None, epoch: int = 1, started: bool = False
    ) -> list[str]:
        """Commit decisions, by default made on what is so now; their ids."""
        head = CommitHead(service, epoch, self.revision if on is None else on, self.clock.now(), leader_started=started)
        log = self.bus.log(subjects.decisions(service))
        count = await log.last() + 1
        named = [(f"{service}/{count}/{number}", decision) for number, decision in enumerate(decisions, 1)]
        await log.append(encode_commit(head, named), expected=count - 1, message_id=f"{count}")
        return [decision_id for decision_id, _ in named]

    async def decide(self, service: str, *decisions: Decision, **how: Any) -> list[Outcome]:
        """``commit``, and what came of it."""
        return await self.outcomes(await self.commit(service, *decisions, **how))

    async def outcomes(self, ids: list[str]) -> list[Outcome]:
        """What came of these decisions, once all of them have come to it."""
        found = await self.until(lambda: known if (known := self._outcomes()).keys() >= set(ids) else None)
        return [found[decision_id] for decision_id in ids]

    def _outcomes(self) -> dict[str, Outcome]:
        known: dict[str, Outcome] = {}
        for message in self.change_sets():
            for outcome in facts.outcomes(message):
                assert outcome.decision_id not in known, f"{outcome.decision_id} has two outcomes"
                known[outcome.decision_id] = outcome
        return known

    @abstractmethod
    async def node(self, name: str) -> str:
        """Make a node that is ready; its name."""

    @abstractmethod
    async def label(self, node: str, labels: dict[str, str]) -> None:
        """Change the labels of a node."""

    @abstractmethod
    async def foreign(self, pod: Manifest, node: str) -> None:
        """Make a pod that somebody else has put on a node."""

    @abstractmethod
    async def delete_node(self, name: str) -> None: ...

    # --- what is so ----------------------------------------------------------------------------------------------

    def change_sets(self) -> list[fact_pb2.ChangeSet]:
        entries = self.bus.log(subjects.FACTS).entries(0)
        return [fact_pb2.ChangeSet.FromString(entry.payload) for entry in entries]

    @property
    def revision(self) -> int:
        return len(self.bus.log(subjects.FACTS).entries(0))

    @property
    def store(self) -> Store:
        """What a reader of the log knows."""
        return self.store_at(self.revision)

    def store_at(self, revision: int) -> Store:
        """What a reader of the log knew at ``revision``."""
        store = Store()
        for sequence, message in enumerate(self.change_sets()[:revision], 1):
            facts.fold(store, message, sequence)
        return store

    def find(self, kind: str, name: str) -> Object | None:
        return self.store.get(self.key(kind, name))

    def get(self, kind: str, name: str) -> Object:
        found = self.find(kind, name)
        assert found is not None, f"there is no {kind} {name}"
        return found

    def names(self, kind: str) -> list[str]:
        return sorted(key.name for key in self.store.of_kind(kind) if key.namespace == self.namespace)

    async def until(self, holds: Callable[[], Any]) -> Any:
        """What ``holds`` returns once that is true."""
        async with asyncio.timeout(SECONDS):
            while not (found := holds()):
                await asyncio.sleep(0.01)
        return found


class OwnSide(Side):
    """A cluster that keeps its objects itself: nodes with an agent, or simulated ones."""

    def __init__(self, number: int, simulated: bool) -> None:
        super().__init__(number)
        self._secrets, self._simulated = MemorySecrets(), simulated
        self._uids = itertools.count(1)

    def make_gateway(self, holder: str) -> Gateway:
        uid = self._uids
        return Gateway(self.bus, self.clock, SETTINGS, self._secrets, lambda: f"uid-{next(uid)}", holder=holder)

    async def node(self, name: str) -> str:
        status = {
            "allocatable": {"cpu": "8", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {} if self._simulated else {"containerRuntimeVersion": "process://1"},
        }
        metadata = {"annotations": {SIMULATED: "true"}} if self._simulated else {}
        await self._report(name := self.prefix + name, metadata, status)
        return name

    async def label(self, node: str, labels: dict[str, str]) -> None:
        await self._report(node, {"labels": labels}, {})

    async def _report(self, node: str, metadata: Manifest, status: Manifest) -> None:
        message = node_pb2.Report(
            node=node, node_metadata=orjson.dumps(metadata), node_status=orjson.dumps(status) if status else b""
        )
        await self.bus.request(subjects.report(node), message.SerializeToString())

    async def foreign(self, pod: Manifest, node: str) -> None:
        await self.write({**pod, "spec": {**pod["spec"], "nodeName": node}})

    async def delete_node(self, name: str) -> None:
        await self.delete(Key("Node", "", name))


FOLLOWED = frozenset(
    (
        *("Pod", "Node", "Namespace", "Secret", "ConfigMap"),
        *("Job.batch.volcano.sh", "PodGroup.scheduling.volcano.sh", "Queue.scheduling.volcano.sh"),
        *("MetricReading.tidegate.dev", "TriggerAuthentication.keda.sh"),
    )
)


class KubernetesSide(Side):
    """The same in front of a real API server, which is reached at ``address`` where that is not its own."""

    def __init__(self, number: int, plane: Any, address: str = "", kinds: frozenset[str] = FOLLOWED) -> None:
        super().__init__(number)
        self._plane, self._address, self._kinds = plane, address or plane.address, kinds
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def ask(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """Ask the API server, past the gateway."""
        return self._plane.request(method, path, body, content)

    def make_gateway(self, holder: str) -> Any:
        from kubernetes.aio.client import Configuration

        from apiserver import Access, Api
        from cluster_gateway.kubernetes.gateway import KubernetesGateway

        configuration = Configuration(host=self._address)
        configuration.ssl_ca_cert = str(self._plane.folder / "ca.crt")
        configuration.api_key = {"BearerToken": f"Bearer {self._plane.token}"}
        api = Api(Access(configuration, None, ""))
        return KubernetesGateway(self.bus, self.clock, SETTINGS, api, self._kinds, holder=holder)

    async def node(self, name: str) -> str:
        from control_plane import node

        self.ask("POST", "/api/v1/nodes", node(name := self.prefix + name))
        await self.until(lambda: self.store.get(Key("Node", "", name)))
        return name

    async def label(self, node: str, labels: dict[str, str]) -> None:
        path, content = f"/api/v1/nodes/{node}", "application/merge-patch+json"
        self.ask("PATCH", path, {"metadata": {"labels": labels}}, content)
        await self.until(lambda: labels.items() <= self.store.objects[Key("Node", "", node)].labels.items())

    async def foreign(self, pod: Manifest, node: str) -> None:
        self.ask(
            "POST", f"/api/v1/namespaces/{self.namespace}/pods", {**pod, "spec": {**pod["spec"], "nodeName": node}}
        )
        await self.until(lambda: self.find("Pod", pod["metadata"]["name"]))

    async def delete_node(self, name: str) -> None:
        self.ask("DELETE", f"/api/v1/nodes/{name}")
        await self.until(lambda: self.store.get(Key("Node", "", name)) is None)
