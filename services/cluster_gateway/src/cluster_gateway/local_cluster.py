"""A cluster without Kubernetes: objects, built-in controllers, simulated nodes, addresses and assignments together.

It is the port's side for the drivers `local` and `simulated`: messages in, edits out; it knows no bus and no clock.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import orjson

from cluster_gateway.domain.addresses import Addresses
from cluster_gateway.domain.assignments import Assignments, NodeAssignment
from cluster_gateway.domain.bootstrap import bootstrap
from cluster_gateway.domain.carrying_out import carry_out, perform
from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.controllers import Controllers
from cluster_gateway.domain.credentials import named_secret
from cluster_gateway.domain.node_life import NodeLife
from cluster_gateway.domain.pod_uids import PodUids
from cluster_gateway.domain.reports import node_evictions, node_state, node_usage, pod_gone, pod_status
from cluster_gateway.domain.simulated_nodes import SimulatedNodes
from cluster_gateway.domain.writing import Conflict, check, store
from cluster_gateway.hiding import Hiding
from cluster_gateway.secrets import Secrets, SecretsNotKept
from cluster_gateway.settings import GatewaySettings
from cluster_gateway.write_message import write_of
from kube import Edit, Event, Events, Key, Object, Outcome, Store, runs
from tidegate.codec.blobs import BlobReader
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

MOST_TURNS = 10_000
"""Built-in controllers that still find work after this many turns at one instant are taken to go in a circle."""


class LocalCluster:
    """Everything that happens inside the cluster between two change sets."""

    def __init__(self, settings: GatewaySettings, secrets: Secrets, new_uid: Callable[[], str]) -> None:
        self._settings, self._secrets, self._new_uid = settings, secrets, new_uid
        self._hiding = Hiding(secrets)
        self.held = False
        """While set, facts are stored but nothing in the cluster reacts to them."""
        self.start(Store(), 0, 1)

    @property
    def store(self) -> Store:
        return self.cluster.store

    @property
    def edits(self) -> int:
        """How many edits the change set that is being gathered has."""
        return len(self.cluster.draft.edits)

    def start(self, loaded: Store, now: int, revision: int) -> None:
        """Begin from the state that the log tells."""
        self.cluster = Cluster(self._new_uid, loaded, seal=self._hiding.seal)
        self._controllers = Controllers(loaded)
        self._simulated = SimulatedNodes(self.cluster, self._settings.simulation)
        self._addresses = Addresses()
        self._assignments = Assignments(loaded, self._settings.inference_gateway)
        self._nodes = NodeLife(self._settings.node_silence_seconds * 1000, self._simulated.is_simulated)
        self._uids = PodUids()
        self._fresh: list[str] = []
        self._done: dict[str, None] = {}
        self.begin(now, revision)
        events = Events()
        events.add_all(Event(None, item) for item in loaded.objects.values())
        self._fold(events)
        self._simulated.begin(now)
        if now:
            bootstrap(self.cluster)

    def begin(self, now: int, revision: int) -> None:
        """The next change set: ``revision`` is the sequence that it will have."""
        self.cluster.now, self.cluster.revision = now, revision

    def write(self, request: gateway_pb2.WriteRequest) -> gateway_pb2.WriteReply:
        """A user's write, all or nothing of it."""
        if request.id and request.id in self._done:
            return gateway_pb2.WriteReply()
        try:
            blobs = BlobReader(request.blobs)
            writes = [write_of(item, blobs) for item in request.writes]
            for write in writes:
                check(self.cluster, write)
            left = self._hiding.left_alone(self.store, writes)
            with self.cluster.whole():
                for write in left.others(writes):
                    store(self.cluster, write, request.actor)
        except Conflict as conflict:
            return gateway_pb2.WriteReply(error=str(conflict), conflict_revision=conflict.revision)
        except SecretsNotKept as error:
            return gateway_pb2.WriteReply(error=str(error))
        except Exception as error:  # what one asks for must not end the cluster for all
            return gateway_pb2.WriteReply(error=f"cannot be stored: {type(error).__name__}: {error}")
        self.remember(request.id)
        return gateway_pb2.WriteReply(unchanged=left.unchanged, immutable=left.immutable)

    def remember(self, request_id: str) -> None:
        """The request was done: asked again it is not done again."""
        if not request_id:
            return
        self._done[request_id] = None
        if len(self._done) > 10_000:
            del self._done[next(iter(self._done))]

    def report(self, message: node_pb2.Report) -> node_pb2.ReportReply:
        """What a node says; what of it cannot be read is told back, and the rest is taken."""
        steps = [partial(self._report_node, message)] if message.node_status or message.node_metadata else []
        steps += [partial(self._report_pod, message.node, pod) for pod in message.pods]
        if message.usage:
            steps.append(partial(self._report_usage, message))
        if message.evictions:
            steps.append(partial(node_evictions, self.cluster, message.node, orjson.loads(message.evictions)))
        errors: list[str] = []
        for step in steps:
            try:
                with self.cluster.whole():
                    step()
            except Exception as error:  # what one node says must not end the cluster for all
                errors.append(f"{type(error).__name__}: {error}")
        for uid in message.gone:
            gone = self.store.get(self._uids.get(uid, Key("", "", "")))
            if gone is not None and gone.uid == uid:
                pod_gone(self.cluster, message.node, gone)
        return node_pb2.ReportReply(error="; ".join(errors))

    def _report_node(self, message: node_pb2.Report) -> None:
        metadata = orjson.loads(message.node_metadata) if message.node_metadata else {}
        status = orjson.loads(message.node_status) if message.node_status else {}
        node_state(self.cluster, message.node, metadata, status)

    def _report_usage(self, message: node_pb2.Report) -> None:
        more = orjson.loads(message.more_usage) if message.more_usage else None
        node_usage(self.cluster, message.node, orjson.loads(message.usage), self._uids, more=more)

    def _report_pod(self, node: str, pod: node_pb2.PodReport) -> None:
        pod_status(self.cluster, node, Key("Pod", pod.namespace, pod.name), pod.uid, orjson.loads(pod.status))

    def carry_out(self, service: str, commit: decision_pb2.Commit, *, stale: bool) -> list[Outcome]:
        """The decisions of one commit, each whole or refused. Raises what is wrong with a commit that cannot be read."""
        outcomes = []
        for decision_id, decision in list(decode_commit(commit)):
            if stale:
                reasons = {"": f"epoch {commit.epoch} of {service} is over"}
                outcomes.append(Outcome(decision_id, decision.name, decision.subject, False, reasons))
            else:
                outcomes.append(carry_out(self.cluster, service, decision_id, decision, commit.decided_on))
        return outcomes

    def react(self) -> Sequence[Edit]:
        """Let all that lives in the cluster react until nothing is left to do at this instant; the edits of it all."""
        for _ in range(MOST_TURNS):
            events = self.cluster.take_events()
            self._fold(events)
            self._simulated.fold(events, self.cluster.now)
            self._hiding.hide(self.cluster, events)
            self._give_addresses(events)
            if not self.held:
                self._simulated.act(self.cluster.now)
                for mutation in self._controllers.act(self.cluster.now):
                    perform(self.cluster, mutation, "cluster_gateway")
            if not self.cluster.events:
                return self.cluster.draft.take()
        raise RuntimeError(f"the cluster's controllers found work {MOST_TURNS} times at one instant")

    def take_failures(self) -> dict[Key, str]:
        """The objects that nothing could be made of since the last call, each with the error."""
        return self._controllers.take_failures()

    def stored(self) -> None:
        """The last edits are in the log."""
        self._hiding.stored()

    def watch_nodes(self, seen: Mapping[str, int], now: int) -> None:
        """Mark nodes whose agent is silent, and those that are heard again."""
        for node, patch in self._nodes.changes(self.store, seen, now):
            self.cluster.actor = "cluster_gateway"
            self.cluster.set_status(node, patch)

    def agents(self, now: int) -> dict[str, int]:
        """The nodes that have an agent, each as heard just now."""
        return self._nodes.first_seen(self.store, now)

    def new_nodes(self) -> list[str]:
        """The nodes without a simulation that appeared since the last call: their agents have to be heard in time."""
        fresh, self._fresh = self._fresh, []
        return [name for name in fresh if not self._simulated.is_simulated(name)]

    def is_silent(self, node: str) -> bool:
        """Whether ``node`` was marked for its silence."""
        return self._nodes.is_marked(self.store, node)

    def deadline(self) -> int | None:
        """When something is due without anybody asking."""
        due = (self._controllers.deadline(), self._simulated.deadline())
        return min((when for when in due if when is not None), default=None)

    def next_silence(self, seen: Mapping[str, int]) -> int | None:
        """When the next node will have been silent for too long, by the clock that ``seen`` goes by."""
        return self._nodes.deadline(self.store, seen)

    def changed_assignments(self) -> Iterator[NodeAssignment]:
        """The assignments that agents have to hear of."""
        for node in self._assignments.take():
            yield self._assignments.of(node)

    def secret_for(self, node: str, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """A Secret's values, for a node that runs a pod of its namespace."""
        if any(pod["metadata"].get("namespace") == namespace for pod in self._assignments.of(node).pods):
            return self._secrets.get(Key("Secret", namespace, name))
        return None

    def credential(self, whose: Key, name: str) -> Mapping[str, bytes] | None:
        """The values of the Secret ``name`` that an authentication names."""
        key = named_secret(self.store.get(whose), name)
        return None if key is None else self._secrets.get(key)

    def _fold(self, events: Sequence[Event]) -> None:
        if not events:
            return
        self._controllers.fold(events, self.cluster.now)
        self._addresses.fold(events)
        self._assignments.fold(events)
        self._uids.fold(events)
        for run in runs(events):
            if run[0].key.kind == "Node" and run[0].old is None:
                self._fresh += [event.key.name for event in run]

    def _give_addresses(self, events: Sequence[Event]) -> None:
        for run in runs(events):
            pod = run[0].new
            if run[0].key.kind != "Pod" or pod is None or (run[0].old is not None and run[0].old.body is pod.body):
                continue
            if not pod.spec.get("nodeName") or pod.status.get("podIP"):
                continue
            for event in run:
                if not self._simulated.is_simulated(str(event.object.spec["nodeName"])):
                    self._give_address(event.object)

    def _give_address(self, pod: Object) -> None:
        current = self.store.get(pod.key)
        if current is not None:
            address = self._addresses.give(pod.uid)
            self.cluster.set_status(current, {"podIP": address, "podIPs": [{"ip": address}]})
