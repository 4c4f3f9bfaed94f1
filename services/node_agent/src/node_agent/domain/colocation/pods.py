"""What the rules of a node depend on in a pod."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address

from kube import Manifest
from kube.colocation import BEST_EFFORT, BURSTABLE, GUARANTEED, QOS_LABEL, kubernetes_qos, qos_of
from kube.cpu_lists import parse_cpus
from kube.json_text import read_json
from kube.lent_resources import current
from kube.pods import sound_pod_request
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.node_slo import Qos
from node_agent.domain.limits import Limits, container_limits, container_request_bytes, lends, whole_limits
from resources import Amounts

SUB_PRIORITY = "koordinator.sh/priority"
WILLING, EVICTION_PRIORITY = "koordinator.sh/eviction-enabled", "koordinator.sh/eviction-priority"
EVICTION_POLICY, EVICTION_COST = "koordinator.sh/eviction-policy", "scheduling.koordinator.sh/eviction-cost"
CPU_BURST, MEMORY_QOS, BLKIO_QOS = "koordinator.sh/cpuBurst", "koordinator.sh/memoryQOS", "koordinator.sh/blkioQOS"
RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
_TIERS = {GUARANTEED: Tier.GUARANTEED, BURSTABLE: Tier.BURSTABLE, BEST_EFFORT: Tier.BEST_EFFORT}
NEVER = (1 << 31) - 1
"""The cost of an eviction that must not happen."""


@dataclass(frozen=True, slots=True)
class ContainerNeed:
    """One container: its limits, and the memory that it asks for."""

    name: str
    limits: Limits
    memory_request_bytes: int
    lent: bool
    """Whether it asks for batch or mid resources, which a kubelet knows nothing of."""


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod of the node. Amounts as in ``resources``; ``requests`` are of the whole pod, lent resources among them."""

    uid: str
    namespace: str
    name: str
    qos: Qos
    tier: Tier
    priority: int
    sub_priority: int
    containers: tuple[ContainerNeed, ...]
    limits: Limits
    requests: Amounts
    cpus: tuple[int, ...] = ()
    """The CPUs that the scheduler chose for it alone."""
    numa_nodes: tuple[int, ...] = ()
    declared: bool = False
    """Whether it says itself of which class it is, and is not merely taken for one by what it asks for."""
    willing: bool | None = None
    """Whether it may be evicted for others; None where it does not say."""
    eviction_priority: int = 0
    eviction_cost: int = 0
    eviction_features: frozenset[str] | None = None
    """Which of the reasons to evict hold for it; None for all."""
    deleting: bool = False
    created: str = ""
    words: Mapping[str, Manifest] | None = None
    """What it says of burst, memory and disks itself, by annotation."""
    workload: str = ""
    """What it is one of: its controller, by namespace, kind and name; without one, itself."""
    addresses: tuple[str, ...] = ()
    """Those that are its own; none where it shares the network of the machine."""

    @property
    def group(self) -> Group:
        return Group(self.tier, self.uid)

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def online(self) -> bool:
        """Whether it serves: everything that is not best effort."""
        return self.qos is not Qos.BE

    @property
    def lent(self) -> bool:
        return any(one.lent for one in self.containers)

    @property
    def pinned(self) -> bool:
        """Whether it has CPUs of its own."""
        return bool(self.cpus) and self.online

    def on_cores(self, core_milli: int) -> "NodePod":
        """The pod where a core does so many thousandths of the one that limits count: its quotas are less by that.

        Not those of pods with CPUs of their own, and of the machine's own pods; nor of best effort that asks for nothing lent.
        """
        shares = self.lent or (self.online and not self.pinned and (self.qos is Qos.LS or not self.declared))
        if not shares:
            return self
        containers = tuple(replace(one, limits=replace(one.limits, core_milli=core_milli)) for one in self.containers)
        return replace(self, containers=containers, limits=replace(self.limits, core_milli=core_milli))

    def word(self, annotation: str) -> Manifest:
        """What the pod says under ``annotation``; nothing where it says nothing."""
        return (self.words or {}).get(annotation, {})


def node_pod(manifest: Manifest) -> NodePod:
    """The pod of ``manifest``; what cannot be read counts as not said, since it was refused at admission."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    main, before = spec.get("containers") or [], spec.get("initContainers") or []
    containers = tuple(_need(manifest, one) for one in [*before, *main])
    qos = Qos(qos_of(labels, spec))
    status = _object(annotations.get(RESOURCE_STATUS))
    priority = _whole(spec.get("priority"), 0)
    return NodePod(
        uid=str(metadata.get("uid") or ""),
        namespace=str(metadata.get("namespace") or "default"),
        name=str(metadata.get("name") or ""),
        qos=qos,
        tier=_TIERS[kubernetes_qos(spec)],
        priority=priority,
        sub_priority=_whole(labels.get(SUB_PRIORITY), priority),
        containers=containers,
        limits=whole_limits(manifest),
        requests=current(sound_pod_request(spec)),
        cpus=_cpus(status),
        numa_nodes=_numa_nodes(status),
        declared=QOS_LABEL in labels or any(one.lent for one in containers),
        willing={"true": True, "false": False}.get(str(labels.get(WILLING))),
        eviction_priority=_whole(annotations.get(EVICTION_PRIORITY, labels.get(EVICTION_PRIORITY)), 0),
        eviction_cost=_whole(annotations.get(EVICTION_COST), 0),
        eviction_features=_features(annotations.get(EVICTION_POLICY)),
        deleting="deletionTimestamp" in metadata,
        created=str(metadata.get("creationTimestamp") or ""),
        words={name: found for name in (CPU_BURST, MEMORY_QOS, BLKIO_QOS) if (found := _object(annotations.get(name)))},
        workload=_workload(metadata),
        addresses=_addresses(spec, manifest.get("status") or {}),
    )


def sound_pod(manifest: Manifest) -> NodePod | None:
    """The pod of a manifest; one that cannot be read never runs here."""
    try:
        return node_pod(manifest)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _need(pod: Manifest, container: Manifest) -> ContainerNeed:
    limits = container_limits(pod, container)
    return ContainerNeed(
        str(container.get("name") or ""), limits, container_request_bytes(container, limits), lends(container)
    )


def _workload(metadata: Manifest) -> str:
    namespace = metadata.get("namespace") or "default"
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{namespace}/{owner.get('kind')}/{owner.get('name')}"
    return f"{namespace}/{metadata.get('name')}"


def _object(text: object) -> Manifest:
    try:
        found = read_json(str(text)) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _features(text: object) -> frozenset[str] | None:
    if not text:
        return None
    try:
        return frozenset(str(one) for one in json.loads(str(text)))
    except (TypeError, ValueError):
        return None


def _cpus(status: Manifest) -> tuple[int, ...]:
    try:
        return parse_cpus(str(status.get("cpuset") or ""))
    except ValueError:
        return ()


def _addresses(spec: Manifest, status: Manifest) -> tuple[str, ...]:
    """A pod of our own nodes has one of the loopback device, by which nothing leaves the machine."""
    listed = status.get("podIPs") or [{"ip": status.get("podIP")}]
    try:
        found = [] if spec.get("hostNetwork") else [ip_address(str(one["ip"])) for one in listed if one.get("ip")]
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()
    return tuple(str(one) for one in found if not one.is_loopback)


def _numa_nodes(status: Manifest) -> tuple[int, ...]:
    listed = status.get("numaNodeResources")
    nodes = [one.get("node") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(sorted({node for node in nodes if isinstance(node, int)}))


def _whole(value: object, otherwise: int) -> int:
    try:
        return otherwise if value is None else int(str(value))
    except ValueError:
        return otherwise
