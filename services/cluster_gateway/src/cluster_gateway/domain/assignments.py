"""What each node's agent has to know: its pods, the ConfigMaps that they name, and the names of their peers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cluster_gateway.domain.host_names import ASKED, asked_entries, host_entries
from kube import Event, Key, Manifest, Object, Store, runs
from kube.node_slo import NODE_SLO
from kube.volumes import VOLUME, claims_of

PROCESSES = "process://"
_DESCRIBING = frozenset(
    ("node.koordinator.sh/reservation", "node.koordinator.sh/system-qos-resource", "node.koordinator.sh/cpu-topology")
)


@dataclass(frozen=True, slots=True)
class NodeAssignment:
    """All that the agent of one node is told, whole each time."""

    node: str
    pods: tuple[Manifest, ...]
    config_maps: Mapping[str, Manifest]
    hosts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    slo: Manifest = field(default_factory=dict)
    """The spec of the node's NodeSLO."""
    node_object: Manifest = field(default_factory=dict)
    """What of the Node the rules depend on."""


@dataclass(slots=True)
class Assignments:
    """Which pods are on which node, and whose agents have something new to hear.

    ``gateway`` is the address that the names of inference services lead to, "" for their pods' alone.
    """

    store: Store
    gateway: str = ""
    _agents: set[str] = field(default_factory=set)
    """The nodes whose agent has registered: nobody else hears assignments."""
    _pods: dict[str, dict[Key, None]] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)

    def fold(self, events: Iterable[Event]) -> None:
        """Note what happened to pods, and to what they name."""
        for run in runs(events):
            kind, namespace, _ = run[0].key
            if kind == "Pod" and self._agents:
                for event in run:
                    self._fold_pod(event)
            elif kind in ("ConfigMap", "Service") or (kind in ASKED and self.gateway and any(map(_is_renamed, run))):
                self._touch_namespace(namespace)
            elif kind == "Node":
                for event in run:
                    self._fold_node(event.key.name, event.old, event.new)
            elif kind == NODE_SLO:
                self._changed |= dict.fromkeys(event.key.name for event in run if event.key.name in self._agents)

    def take(self) -> list[str]:
        """The nodes whose assignment changed since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def of(self, node: str) -> NodeAssignment:
        """The assignment of ``node`` as it stands."""
        pods = [self.store.objects[key] for key in sorted(self._pods.get(node, {}))]
        namespaces = sorted({pod.namespace for pod in pods})
        hosts = tuple((namespace, *entry) for namespace in namespaces for entry in self._hosts(namespace))
        manifests = tuple(self._manifest(pod) for pod in pods)
        return NodeAssignment(node, manifests, self._config_maps(pods), hosts, *node_rules(self.store, node))

    def _hosts(self, namespace: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.gateway:
            yield from asked_entries(self.store, namespace, self.gateway)
        yield from host_entries(self.store, namespace)

    def _manifest(self, pod: Object) -> Manifest:
        """The pod as its node has to run it: a claim on a volume that names a path of the machine is that path."""
        manifest = pod.manifest()
        claims = claims_of(pod.spec, pod.namespace)
        paths = {key.name: path for key in claims if (path := self._path_of(key))}
        if not paths:
            return manifest
        volumes = [
            {"name": volume.get("name"), "hostPath": {"path": paths[name]}} if name in paths else volume
            for volume in pod.spec.get("volumes") or ()
            for name in [(volume.get("persistentVolumeClaim") or {}).get("claimName")]
        ]
        return {**manifest, "spec": {**pod.spec, "volumes": volumes}}

    def _path_of(self, claim: Key) -> str:
        """The path of a claim's volume, "" for a volume that is a folder of the agent's own."""
        found = self.store.get(claim)
        volume = self.store.get(Key(VOLUME, "", str(found.spec.get("volumeName")))) if found is not None else None
        spec = volume.spec if volume is not None else {}
        return str((spec.get("hostPath") or spec.get("local") or {}).get("path") or "")

    def _fold_node(self, name: str, before: Object | None, node: Object | None) -> None:
        """An agent that registers takes up the pods that were bound to its node before."""
        if node is None:
            self._agents.discard(name)
        elif name not in self._agents and has_agent(node):
            self._agents.add(name)
            bound = (key for key, pod in self.store.of_kind("Pod").items() if pod.spec.get("nodeName") == name)
            self._pods[name] = dict.fromkeys(bound)
            self._changed[name] = None
        elif name in self._agents and (before is None or described(before) != described(node)):
            self._changed[name] = None

    def _fold_pod(self, event: Event) -> None:
        before = event.old.spec.get("nodeName") if event.old else None
        after = event.new.spec.get("nodeName") if event.new else None
        if after and after not in self._agents:
            return
        if before and before != after and before in self._agents:
            self._pods.get(before, {}).pop(event.key, None)
            self._changed[before] = None
        if event.new is None or not after:
            return
        self._pods.setdefault(after, {})[event.key] = None
        old = event.old
        if old is None or before != after or old.uid != event.new.uid or old.metadata is not event.new.metadata:
            self._changed[after] = None
        if old is None or before != after:
            self._touch_namespace(event.key.namespace)

    def _touch_namespace(self, namespace: str) -> None:
        """Peers have to learn a new name, or pods a new ConfigMap."""
        for node, pods in self._pods.items():
            if any(key.namespace == namespace for key in pods):
                self._changed[node] = None

    def _config_maps(self, pods: Iterable[Object]) -> dict[str, Manifest]:
        found: dict[str, Manifest] = {}
        for pod in pods:
            for name in _named_config_maps(pod.spec):
                config = self.store.get(Key("ConfigMap", pod.namespace, name))
                if config is not None:
                    found[f"{pod.namespace}/{name}"] = config.body
        return found


def node_rules(store: Store, node: str) -> tuple[Manifest, Manifest]:
    """The spec of a node's NodeSLO, and what of its Node the rules depend on."""
    slo, found = store.get(Key(NODE_SLO, "", node)), store.get(Key("Node", "", node))
    return slo.spec if slo is not None else {}, described(found) if found is not None else {}


def described(node: Object) -> Manifest:
    """What of a Node its agent decides by, beside what it finds itself."""
    annotations = {name: text for name, text in node.annotations.items() if name in _DESCRIBING}
    return {
        "metadata": {"annotations": annotations},
        "status": {name: node.status.get(name) or {} for name in ("capacity", "allocatable")},
    }


def _is_renamed(event: Event) -> bool:
    """Whether the parts that it has names for are others."""
    return event.old is None or event.new is None or event.old.spec.keys() != event.new.spec.keys()


def has_agent(node: Object) -> bool:
    """Whether a node agent reports of the node: only it says what runs containers there, and that these are processes."""
    runtime = (node.status.get("nodeInfo") or {}).get("containerRuntimeVersion")
    return isinstance(runtime, str) and runtime.startswith(PROCESSES)


def _named_config_maps(spec: Manifest) -> Iterator[str]:
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for source in container.get("envFrom") or ():
            yield str((source.get("configMapRef") or {}).get("name", ""))
        for variable in container.get("env") or ():
            yield str(((variable.get("valueFrom") or {}).get("configMapKeyRef") or {}).get("name", ""))
    for volume in spec.get("volumes") or ():
        yield str((volume.get("configMap") or {}).get("name", ""))
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield str((source.get("configMap") or {}).get("name", ""))
