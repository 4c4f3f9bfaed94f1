"""What a gang asks for: its minima, its sub-groups, the gangs that it starts with; from a PodGroup or from its pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from gang_scheduler.domain.terms.network_words import Topology, topology_of, topology_told
from gang_scheduler.domain.terms.selectors import Conjunction, label_selector
from gang_scheduler.domain.terms.task_topology import TaskTopology, task_topology_of
from kube import Object
from kube.json_text import read_json

KOORDINATOR = "gang.scheduling.koordinator.sh/"
SIGS = "pod-group.scheduling.sigs.k8s.io"
VOLCANO_GROUP = "PodGroup.scheduling.volcano.sh"
SIGS_GROUPS = ("PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.sigs.k8s.io")
"""The scheduler plugins', and under their older group, which is Koordinator's."""
KUBERNETES_GROUP = "PodGroup.scheduling.k8s.io"
"""Kubernetes' own."""
DEFAULT_QUEUE = "default"

_GROUP_NAME = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_GANG_NAME = (KOORDINATOR + "name", SIGS + "/name", SIGS, "scheduling.x-k8s.io/pod-group")
_MIN_AVAILABLE = (KOORDINATOR + "min-available", SIGS + "/min-available")
_QUEUE_NAME = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
QUOTA_NAME = "quota.scheduling.koordinator.sh/name"
PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
QUOTAS = "quota/"
"""Before the name of an elastic quota among the queues."""
LOCAL_QUEUE = "kueue.x-k8s.io/queue-name"
ADMISSION = "tidegate.dev/admission"
"""What the queue manager grants to those that name a LocalQueue; before that they are not let in."""
REVOKED = "tidegate.dev/revoked"
"""The queue manager wants that back: the pods are evicted, and nothing new starts."""
QUOTA_OF = "tidegate.dev/quota-of"
"""Whose quota the pods of a Job use; ``Job/name/count`` makes them a gang that starts with so many."""
COHORTS = "cohort/"
"""Before the name of a ClusterQueue among the queues."""
FIXED = "/fixed"
"""After it: what of the quota is used by pods that cannot be taken back."""


class MatchPolicy(StrEnum):
    """Which members count when a gang is matched with its minimum: Koordinator's ``match-policy``."""

    NONE = ""
    """Those that live; once one does, others come one by one."""
    ONCE_SATISFIED = "once-satisfied"
    """None any more after the gang has started for the first time."""
    ONLY_WAITING = "only-waiting"
    """Those that wait: whoever comes later starts with as many again."""
    WAITING_AND_RUNNING = "waiting-and-running"
    """Those that wait and those that are on nodes: below the minimum all that are missing come together."""


MATCH_POLICIES = frozenset(map(str, MatchPolicy))


class GroupId(NamedTuple):
    """A gang (``kind`` "gang") or a pod that is one by itself ("pod")."""

    kind: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """What people call it: its name, or the name of the Job whose pods are a gang by themselves (see QUOTA_OF)."""
        return self.name.split("/")[1] if self.name.count("/") == 2 else self.name


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """Pods that ``selector`` takes, divided by the values of ``keys``, start in sub-groups of ``size``, ``minimum`` at least."""

    name: str
    selector: Conjunction | None
    keys: tuple[str, ...]
    size: int
    minimum: int
    topology: Topology | None = None


@dataclass(frozen=True, slots=True)
class GangTerms:
    """The terms of one gang. ``bundle`` names the gangs of its bundle, itself included, sorted; empty when there is none."""

    min_member: int = 1
    roles: tuple[tuple[str, int], ...] = ()
    sub_groups: tuple[SubGroupPolicy, ...] = ()
    bundle: tuple[GroupId, ...] = ()
    queue: str = ""
    priority_class: str = ""
    topology: Topology | None = None
    task_topology: TaskTopology | None = None
    match: MatchPolicy = MatchPolicy.NONE

    @property
    def fenced(self) -> bool:
        """Whether anything of it has to be inside a network domain."""
        if not self.sub_groups:
            return self.topology is not None
        return self.topology is not None or any(policy.topology is not None for policy in self.sub_groups)


ALONE = GangTerms()
"""The terms of a pod without a group."""


def group_of(pod: Object) -> GroupId:
    """The gang that a pod names, or the pod itself."""
    annotations = pod.annotations
    for name in _GROUP_NAME:
        if name in annotations:
            return GroupId("gang", pod.namespace, annotations[name])
    if "schedulingGroup" in pod.spec and (named := (pod.spec["schedulingGroup"] or {}).get("podGroupName")):
        return GroupId("gang", pod.namespace, str(named))
    if annotations or pod.labels:
        gang = _first(_GANG_NAME, annotations, pod.labels)
        gang = gang or _gang_of_job(annotations)
        if gang:
            return GroupId("gang", pod.namespace, gang)
    return GroupId("pod", pod.namespace, pod.name)


def _gang_of_job(annotations: Mapping[str, str]) -> str:
    """The gang that the pods of a Job with quota are, ``Job/name/count``; "" where each is by itself."""
    text = annotations.get(QUOTA_OF, "")
    return text if text.count("/") == 2 else ""


def queue_of(pod: Object, namespace_annotations: Mapping[str, str], namespace_queue: str = "") -> str:
    """The queue of a pod that is in no PodGroup; ``namespace_queue`` is where its namespace's pods are by default."""
    named = _granted_queue(pod) or quota_of(pod.labels) or _first(_QUEUE_NAME, pod.annotations, pod.labels)
    if not named and namespace_queue:
        return _within(namespace_queue, pod.labels)
    return named or namespace_annotations.get(_QUEUE_NAME[0]) or DEFAULT_QUEUE


def _granted_queue(item: Object) -> str:
    """The ClusterQueue whose quota a pod or group in a LocalQueue was given, as a queue; "" for one that is in none."""
    if LOCAL_QUEUE not in item.labels:
        return ""
    return COHORTS + _cluster_queue(item.annotations.get(ADMISSION, ""))


@lru_cache(maxsize=4096)
def _cluster_queue(text: str) -> str:
    try:
        content = read_json(text) if text else {}
    except ValueError:
        return ""
    return str(content.get("clusterQueue") or "") if isinstance(content, dict) else ""


def quota_of(labels: Mapping[str, str]) -> str:
    """The elastic quota that labels name, as a queue; "" for none."""
    name = labels.get(QUOTA_NAME)
    return _within(QUOTAS + name, labels) if name else ""


def _within(queue: str, labels: Mapping[str, str]) -> str:
    return queue + FIXED if queue.startswith(QUOTAS) and labels.get(PREEMPTIBLE) == "false" else queue


def terms_of_group(group: Object) -> GangTerms:
    """The terms that a PodGroup states. ``queue`` is "" where only its members can tell."""
    spec = group.spec
    default = DEFAULT_QUEUE if group.kind == VOLCANO_GROUP else ""
    own = GroupId("gang", group.namespace, group.name)
    return GangTerms(
        _minimum(group),
        tuple(sorted((str(role), _integer(least, 0)) for role, least in (spec.get("minTaskMember") or {}).items())),
        tuple(_sub_group(item) for item in spec.get("subGroupPolicy") or ()),
        bundle_of(own, group.annotations.get(KOORDINATOR + "groups")),
        _granted_queue(group) or quota_of(group.labels) or str(spec.get("queue") or default),
        str(spec.get("priorityClassName") or ""),
        topology_of(spec.get("networkTopology")) or topology_told(group.annotations),
        task_topology_of(group.annotations) if group.annotations else None,
        match_of(group.annotations),
    )


def _minimum(group: Object) -> int:
    """How many start together. Kubernetes' own groups say it by their policy: a basic one has pods start one by one."""
    if group.kind == KUBERNETES_GROUP:
        gang = (group.spec.get("schedulingPolicy") or {}).get("gang") or {}
        return max(1, _integer(gang.get("minCount"), 1))
    return max(0, _integer(group.spec.get("minMember"), 1))


def terms_of_pod(pod: Object) -> GangTerms | None:
    """The terms that a pod states for its gang; None when it states no minimum, or none that is a number: the gang waits."""
    least = _first(_MIN_AVAILABLE, pod.annotations, pod.labels)
    least = least or _gang_of_job(pod.annotations).rpartition("/")[2]
    minimum = _integer(least, -1) if least else -1
    if minimum < 0:
        return None
    own = group_of(pod)
    bundle = bundle_of(own, pod.annotations.get(KOORDINATOR + "groups"))
    topology, match = topology_told(pod.annotations), match_of(pod.annotations)
    return GangTerms(minimum, bundle=bundle, topology=topology, match=match)


def match_of(annotations: Mapping[str, str]) -> MatchPolicy:
    """The match policy that annotations name; one that there is not is none."""
    text = annotations.get(KOORDINATOR + "match-policy", "")
    return MatchPolicy(text) if text in MATCH_POLICIES else MatchPolicy.NONE


def bundle_of(own: GroupId, text: str | None) -> tuple[GroupId, ...]:
    """The gangs that a groups annotation (a JSON list of ``namespace/name``) names; empty when it names no other."""
    try:
        names = read_json(text) if text else []
    except ValueError:
        return ()
    if not isinstance(names, list):
        return ()
    ids = {own}
    for name in names:
        namespace, slash, rest = str(name).rpartition("/")
        ids.add(GroupId("gang", namespace if slash else own.namespace, rest))
    return tuple(sorted(ids)) if len(ids) > 1 else ()


def _sub_group(item: Mapping[str, Any]) -> SubGroupPolicy:
    return SubGroupPolicy(
        str(item.get("name") or ""),
        label_selector(item.get("labelSelector")),
        tuple(item.get("matchLabelKeys") or ()),
        max(1, _integer(item.get("subGroupSize"), 1)),
        max(0, _integer(item.get("minSubGroups"), 0)),
        topology_of(item.get("networkTopology")),
    )


def _first(names: tuple[str, ...], *places: Mapping[str, str]) -> str:
    for name in names:
        for place in places:
            if place.get(name):
                return str(place[name])
    return ""


def _integer(value: Any, default: int) -> int:
    try:
        return default if value is None else int(value)
    except (TypeError, ValueError, OverflowError):
        return default
