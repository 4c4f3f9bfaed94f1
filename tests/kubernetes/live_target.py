"""Scenarios against services that drive a real API server, in real time: the target that their harness asks for.

The user is a client of the API server, whose webhooks are Tidegate's. While the user and the nodes speak the deciding services
are held, as in virtual time: what one step says is seen as a whole.
"""

import base64
import signal
import time
from collections.abc import Mapping, Sequence
from itertools import groupby

from live_cluster import LiveCluster, key_of_path, status_patch

from apiserver import Answer, ApiRequest
from apiserver.api import MERGE_PATCH
from kube import Key, Manifest, Object, Store, key_of, merge, parse_duration
from testing.scenarios.target import MetricSample, NodeUsage, PodReport
from tidegate_cli.sim.explanations import environment_of, message_of
from tidegate_cli.sim.pod_reports import reported_status
from tidegate_cli.sim.services import ROLES

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "tidegate-system")
ALWAYS_THERE = {
    "Namespace": NAMESPACES,
    "Queue.scheduling.volcano.sh": ("root", "default"),
    "PriorityClass.scheduling.k8s.io": ("system-cluster-critical", "system-node-critical"),
}
NOT_CLEANED = frozenset({"Secret", "ConfigMap", "Service", "Endpoints", "EndpointSlice.discovery.k8s.io"})
"""Kinds of which a cluster has objects of its own, which have no owner."""
CLEAN_SECONDS = 30.0
KNOWN_SECONDS = 5.0


class CannotPlay(Exception):
    """The scenario asks for something that no API server takes; the text says what."""


class LiveTarget:
    """One scenario's view of ``live``."""

    def __init__(self, live: LiveCluster, simulate: Manifest) -> None:
        self._live = live
        self._held = False
        live.evicted.clear()
        start = simulate.get("podStart", "0s")
        live.start_ms = None if start == "manual" else parse_duration(str(start))
        live.termination_ms = parse_duration(str(simulate.get("termination", "0s")))

    # --- what the harness asks for -------------------------------------------------------------------------------

    def now(self) -> int:
        return int(time.time() * 1000)

    def apply(self, manifests: Sequence[Manifest]) -> list[str | None]:
        self._hold()
        prepared = [self._prepared(manifest) for manifest in manifests]
        told: list[str | None] = []
        for kind, run in groupby(prepared, lambda manifest: str(manifest["kind"])):
            told += self._send(kind, list(run))
        return told

    def _send(self, kind: str, manifests: list[Manifest]) -> list[str | None]:
        """Objects of one kind: an API server refuses what names something that it does not have yet."""
        store, until = self.store(), time.monotonic() + KNOWN_SECONDS
        requests = [self._written(manifest, store.get(key_of(manifest))) for manifest in manifests]
        answers = self._live.send(requests)
        # Its admission hears of a new PriorityClass a little later than who made it.
        while kind == "Pod" and any(map(_unheard, answers)) and time.monotonic() < until:
            answers = [
                self._live.send([request])[0] if _unheard(answer) else answer
                for request, answer in zip(requests, answers, strict=True)
            ]
        self._heard_of(manifests, answers)
        return [None if answer.ok else answer.message for answer in answers]

    def delete(self, key: Key) -> str | None:
        self._hold()
        body = {"propagationPolicy": "Background"}
        (answer,) = self._live.send([ApiRequest("DELETE", key_of_path(self._live, key), body)])
        return None if answer.ok else answer.message

    def put_nodes(self, manifests: Sequence[Manifest]) -> None:
        self._hold()
        for manifest in manifests:
            self._facts([manifest])

    def seed(self, manifests: Sequence[Manifest]) -> None:
        self._hold()
        self._facts([self._prepared(manifest) for manifest in manifests])

    def patch_node(self, name: str, change: Manifest) -> None:
        self._hold()
        path = key_of_path(self._live, Key("Node", "", name))
        rest = {part: value for part, value in change.items() if part != "status"}
        patches = [ApiRequest("PATCH", path, rest, content=MERGE_PATCH)] if rest else []
        if "status" in change:
            patches.append(
                status_patch(path, self.store().of_kind("Node")[Key("Node", "", name)].uid, change["status"])
            )
        for patch in patches:
            _good(self._live.send([patch]))

    def delete_node(self, name: str) -> None:
        self.delete(Key("Node", "", name))

    def set_pod(self, namespace: str, name: str, report: PodReport) -> None:
        self._hold()
        pod = self.store().get(Key("Pod", namespace, name))
        if pod is None or not pod.spec.get("nodeName"):
            raise LookupError(f"pod {namespace}/{name} is {'not bound' if pod else 'not there'}: no node reports of it")
        status = reported_status(pod, report, self.now())
        _good(self._live.send([status_patch(key_of_path(self._live, pod.key), pod.uid, status)]))

    def sample_usage(self, node: str, usage: NodeUsage) -> None:
        raise CannotPlay("usage of nodes")

    def sample_metrics(self, samples: Sequence[MetricSample]) -> None:
        raise CannotPlay("metrics")

    def advance(self, ms: int) -> None:
        self.settle()
        time.sleep(ms / 1000)

    def settle(self) -> None:
        self._release()
        self._live.settle()

    def restart(self, roles: Sequence[str]) -> None:
        self.settle()
        self._live.signal([name for role in roles for name in ROLES[role]], signal.SIGKILL)
        self._live.settle()

    def store(self) -> Store:
        return self._live.store()

    def evictions(self) -> list[tuple[str, str]]:
        return list(self._live.evicted)

    def environment(self, pod: Object) -> dict[str, str]:
        return environment_of(pod, self.store(), _ReadSecrets(self._live))

    def replicas(self, key: Key) -> int | None:
        found = self.store().get(key)
        return int(found.spec["replicas"]) if found is not None and "replicas" in found.spec else None

    def traffic(self, key: Key) -> dict[str, int]:
        return {}

    def cgroup(self, node: str, path: str) -> str | None:
        return None

    def pod_message(self, pod: Object) -> str:
        return message_of(pod, self.store())

    def violations(self) -> list[str]:
        return []

    def close(self) -> None:
        """Delete everything that the scenario made."""
        self._release()
        self._live.start_ms, self._live.termination_ms = 0, 0
        until = time.monotonic() + CLEAN_SECONDS
        while left := self._left():
            if time.monotonic() > until:
                raise TimeoutError(f"still there: {', '.join(str(item.key) for item in left[:5])}")
            body = {"propagationPolicy": "Background"}
            self._live.send(
                ApiRequest(
                    "DELETE",
                    key_of_path(self._live, item.key),
                    {**body, "gracePeriodSeconds": 0} if item.kind == "Pod" else body,
                )
                for item in left
                if not item.deleting or item.kind == "Pod"
            )
            self._live.settle()

    # --- the parts -----------------------------------------------------------------------------------------------

    def _left(self) -> list[Object]:
        objects = [
            item
            for item in self.store().objects.values()
            if not (item.kind in NOT_CLEANED and item.controller is None)
            and item.name not in ALWAYS_THERE.get(item.kind, ())
        ]
        # Who would make others again goes first; what they own goes with them.
        owners = [item for item in objects if item.controller is None]
        return owners or objects

    def _hold(self) -> None:
        if not self._held:
            self._live.signal(ROLES["all"], signal.SIGSTOP)
            self._held = True

    def _release(self) -> None:
        if self._held:
            self._live.until_stored()
        self._live.signal(ROLES["all"], signal.SIGCONT)
        self._held = False

    def _prepared(self, manifest: Manifest) -> Manifest:
        """As an API server takes it: with a namespace that is there, and its priority as a class."""
        namespace = str(manifest["metadata"].get("namespace") or "default")
        self._make("Namespace", "v1", namespace, {}, namespace in NAMESPACES)
        spec = manifest.get("spec") or {}
        if manifest["kind"] != "Pod":
            return manifest
        priority = spec.get("priority")
        if priority is not None and "priorityClassName" not in spec:
            name = f"lab-{priority}".replace("--", "-minus-")
            self._make("PriorityClass", "scheduling.k8s.io/v1", name, {"value": priority}, False)
            spec = {**{part: value for part, value in spec.items() if part != "priority"}, "priorityClassName": name}
        rest = {"terminationGracePeriodSeconds": 30, **spec}
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}, "spec": rest}

    def _make(self, kind: str, version: str, name: str, body: Manifest, there: bool) -> None:
        manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **body}
        if not there and self.store().get(key_of(manifest)) is None:
            self._facts([manifest])

    def _written(self, manifest: Manifest, old: Object | None) -> ApiRequest:
        key = key_of(manifest)
        if not self._live.has(key.kind):
            raise CannotPlay(f"a cluster has no {key.kind}")
        served = self._live.served(key.kind)
        manifest = {**manifest, "apiVersion": served.prefix.removeprefix("/apis/").removeprefix("/api/")}
        if old is None:
            return ApiRequest("POST", served.path(key.namespace), manifest)
        metadata = {**manifest["metadata"], "resourceVersion": str(old.revision)}
        kept = old.manifest() if key.kind == "Pod" else {}
        return ApiRequest("PUT", served.path(key.namespace, key.name), merge(kept, {**manifest, "metadata": metadata}))

    def _facts(self, manifests: Sequence[Manifest]) -> None:
        """Objects with their status, one after the other: facts of the cluster, which no rule of ours refuses."""
        for manifest in manifests:
            key = key_of(manifest)
            body = {name: part for name, part in manifest.items() if name != "status"}
            answers = self._live.send([self._written(body, self.store().get(key))])
            _good(answers)
            if manifest.get("status"):
                path = key_of_path(self._live, key)
                _good(self._live.send([status_patch(path, answers[0].body["metadata"]["uid"], manifest["status"])]))
            self._heard_of([manifest], answers)

    def _heard_of(self, manifests: Sequence[Manifest], answers: Sequence[Answer]) -> None:
        """Wait until the watches tell of what was written."""
        until = time.monotonic() + 10
        for manifest, answer in zip(manifests, answers, strict=True):
            while answer.ok and self.store().get(key_of(manifest)) is None and time.monotonic() < until:
                time.sleep(0.01)


class _ReadSecrets:
    """Values of Secrets, from the API server."""

    def __init__(self, live: LiveCluster) -> None:
        self._live = live

    def get(self, key: Key) -> Mapping[str, bytes] | None:
        (answer,) = self._live.send([ApiRequest("GET", key_of_path(self._live, key))])
        data = answer.body.get("data") or {}
        return {name: base64.b64decode(text) for name, text in data.items()} if answer.ok else None

    def put_all(self, values: Mapping[Key, Mapping[str, bytes]]) -> None:
        raise NotImplementedError

    def drop(self, key: Key) -> None:
        raise NotImplementedError


def _unheard(answer: Answer) -> bool:
    return not answer.ok and "no PriorityClass" in answer.message


def _good(answers: Sequence[Answer]) -> None:
    for answer in answers:
        if not answer.ok:
            raise CannotPlay(answer.message)
