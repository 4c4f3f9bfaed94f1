"""What the agents beside kubelets say, written to the API server: its watches make facts of it, as of all else.

A node's use is the status of its NodeMetric, its GPUs are its Device. Objects of these names that somebody else made,
Koordinator's agent for instance, are left to them.
"""

import logging
from collections.abc import Mapping

import orjson

from apiserver.api import MERGE_PATCH, Answer, Api, ApiRequest, Unreachable
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.domain.node_objects import (
    DEVICE,
    INVENTORY,
    MANAGED_BY,
    METRIC,
    TIDEGATE,
    device_spec,
    metric_status,
    owner,
)
from cluster_gateway.kubernetes.agent_identity import AgentIdentity
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.requests import NotServed, manager, served_kind
from kube import Key, Manifest, Object, api_version_of
from kube.node_evictions import EVICTIONS, written
from tidegate.node.v1 import node_pb2

log = logging.getLogger(__name__)

NOT_FOUND = 404
PARAMETERS = manager("node_agent")


class NodeReports:
    """Takes the reports of agents, of each node one at a time; ``mirror`` tells which pods and objects there are.

    With ``account`` only of agents that are pods of this account, each about its own node.
    """

    def __init__(self, api: Api, mirror: Mirror, served: Mapping[str, Served], account: str = "") -> None:
        self._api, self._mirror, self._served = api, mirror, served
        self._identity = AgentIdentity(api, mirror, account)
        self._busy: set[str] = set()

    async def take(self, message: node_pb2.Report, now: int) -> str:
        """Returns once the API server has stored what ``message`` says; else why not: the agent will say it again."""
        name = message.node
        node = self._mirror.store.get(Key("Node", "", name))
        if node is None:
            return f"the cluster has no node {name!r}"
        if message.pods or message.gone or message.node_status or message.node_metadata:
            return f"the pods of node {name} are its kubelet's: start the agent with --kubelet"
        try:
            refusal = await self._identity.refusal(name, message.token)
        except Unreachable as error:
            return str(error)
        if refusal:
            log.warning("report_refused", extra={"node": name, "why": refusal})
            return refusal
        if name in self._busy:
            return f"the report of node {name} before this one is still on its way to the API server"
        self._busy.add(name)
        try:
            if message.usage:
                more = orjson.loads(message.more_usage) if message.more_usage else None
                await self._take_usage(node, orjson.loads(message.usage), more)
            if message.evictions:
                await self._take_evictions(node, orjson.loads(message.evictions), now)
            if message.devices:
                await self._take_devices(node, orjson.loads(message.devices))
        except (_Unwritten, NotServed, Unreachable) as error:
            return str(error)
        except Exception as error:  # what one node says must not end the cluster for all
            return f"{type(error).__name__}: {error}"
        finally:
            self._busy.discard(name)
        return ""

    async def _take_usage(self, node: Object, samples: list[Manifest], more: Manifest | None) -> None:
        own = {uid: key for sample in samples if (key := self._own_pod(node, uid := str(sample["uid"]))) is not None}
        status = metric_status(samples, own, more=more)
        key = Key(METRIC, "", node.name)
        if status is None or self._is_of_another(key):
            return
        path = served_kind(self._served, key).path("", key.name) + "/status"
        request = ApiRequest("PATCH", path, {"status": status}, PARAMETERS, MERGE_PATCH)
        answer = await self._api.send(request)
        if answer.code == NOT_FOUND:
            await self._create(key, node, {"spec": {}})
            answer = await self._api.send(request)
        _judge(key, answer)

    async def _take_evictions(self, node: Object, wishes: list[Manifest], now: int) -> None:
        """Which pods of the node have to leave: told with its use, of which the annotation is a part."""
        key = Key(METRIC, "", node.name)
        own = [wish for wish in wishes if self._own_pod(node, str(wish["uid"])) is not None]
        metric = self._mirror.store.get(key)
        if self._is_of_another(key) or (not own and (metric is None or EVICTIONS not in metric.annotations)):
            return
        if metric is None:  # nothing was measured for it yet
            await self._create(key, node, {"spec": {}})
        path = served_kind(self._served, key).path("", key.name)
        body = {"metadata": {"annotations": {EVICTIONS: written(now, own) if own else None}}}
        _judge(key, await self._api.send(ApiRequest("PATCH", path, body, PARAMETERS, MERGE_PATCH)))

    async def _take_devices(self, node: Object, inventory: Manifest) -> None:
        key, spec = Key(DEVICE, "", node.name), device_spec(inventory)
        annotations = {INVENTORY: orjson.dumps(inventory).decode()}
        there = self._mirror.store.get(key)
        if there is None:
            if spec["devices"]:
                await self._create(key, node, {"spec": spec}, annotations)
            return
        is_so = there.spec == spec and there.annotations.get(INVENTORY) == annotations[INVENTORY]
        if is_so or self._is_of_another(key):
            return
        path = served_kind(self._served, key).path("", key.name)
        body = {"metadata": {"uid": there.uid, "annotations": annotations}, "spec": spec}
        _judge(key, await self._api.send(ApiRequest("PATCH", path, body, PARAMETERS, MERGE_PATCH)))

    async def _create(
        self, key: Key, node: Object, content: Manifest, annotations: Mapping[str, str] | None = None
    ) -> None:
        """Make an object that goes with its Node. One that is there already, and not known of yet, is left as it is."""
        metadata: Manifest = {
            "name": key.name,
            "labels": {MANAGED_BY: TIDEGATE},
            "annotations": dict(annotations or {}),
            "ownerReferences": [owner(node)],
        }
        body = {
            "apiVersion": api_version_of(key.kind),
            "kind": key.kind.partition(".")[0],
            "metadata": metadata,
            **content,
        }
        answer = await self._api.send(ApiRequest("POST", served_kind(self._served, key).path(""), body, PARAMETERS))
        if answer.reason != "AlreadyExists":
            _judge(key, answer)

    def _own_pod(self, node: Object, uid: str) -> Key | None:
        """The pod ``uid``, if it is on ``node``: an agent speaks of no other's."""
        key = self._mirror.pods.get(uid)
        pod = self._mirror.store.get(key) if key is not None else None
        return key if pod is not None and pod.spec.get("nodeName") == node.name else None

    def _is_of_another(self, key: Key) -> bool:
        there = self._mirror.store.get(key)
        if there is None or there.metadata.get("labels", {}).get(MANAGED_BY) == TIDEGATE:
            return False
        log.info("object_of_another", extra={"object": str(key)})
        return True


class _Unwritten(Exception):
    """The API server did not store it; the text says why."""


def _judge(key: Key, answer: Answer) -> None:
    if not answer.ok:
        raise _Unwritten(f"{key}: {answer.message}")
