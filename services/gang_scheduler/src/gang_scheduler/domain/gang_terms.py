"""What a gang asks for: its minima, its sub-groups, the gangs that it starts with; from a PodGroup or from its pods."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gang_scheduler.domain.hyper_nodes import Topology, topology_of
from gang_scheduler.domain.selectors import Conjunction, label_selector
from kube import Object

KOORDINATOR = "gang.scheduling.koordinator.sh/"
SIGS = "pod-group.scheduling.sigs.k8s.io"
VOLCANO_GROUP = "PodGroup.scheduling.volcano.sh"
SIGS_GROUP = "PodGroup.scheduling.x-k8s.io"
DEFAULT_QUEUE = "default"

_GROUP_NAME = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_GANG_NAME = (KOORDINATOR + "name", SIGS + "/name", SIGS)
_MIN_AVAILABLE = (KOORDINATOR + "min-available", SIGS + "/min-available")
_QUEUE_NAME = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
QUOTA_NAME = "quota.scheduling.koordinator.sh/name"


class GroupId(NamedTuple):
    """A gang (``kind`` "gang") or a pod that is one by itself ("pod")."""

    kind: str
    namespace: str
    name: str


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

    @property
    def fenced(self) -> bool:
        """Whether anything of it has to be inside a network domain."""
        return self.topology is not None or any(policy.topology is not None for policy in self.sub_groups)


ALONE = GangTerms()
"""The terms of a pod without a group."""


def group_of(pod: Object) -> GroupId:
    """The gang that a pod names, or the pod itself."""
    annotations = pod.annotations
    for name in _GROUP_NAME:
        if name in annotations:
            return GroupId("gang", pod.namespace, annotations[name])
    if annotations or pod.labels:
        gang = _first(_GANG_NAME, annotations, pod.labels)
        if gang:
            return GroupId("gang", pod.namespace, gang)
    return GroupId("pod", pod.namespace, pod.name)


def queue_of(pod: Object, namespace_annotations: Mapping[str, str]) -> str:
    """The queue of a pod that is in no PodGroup."""
    named = _first(_QUEUE_NAME, pod.annotations, pod.labels) or pod.labels.get(QUOTA_NAME)
    return named or namespace_annotations.get(_QUEUE_NAME[0]) or DEFAULT_QUEUE


def terms_of_group(group: Object) -> GangTerms:
    """The terms that a PodGroup states."""
    spec = group.spec
    own = GroupId("gang", group.namespace, group.name)
    return GangTerms(
        max(0, _integer(spec.get("minMember"), 1)),
        tuple(sorted((str(role), _integer(least, 0)) for role, least in (spec.get("minTaskMember") or {}).items())),
        tuple(_sub_group(item) for item in spec.get("subGroupPolicy") or ()),
        bundle_of(own, group.annotations.get(KOORDINATOR + "groups")),
        str(spec.get("queue") or DEFAULT_QUEUE),
        str(spec.get("priorityClassName") or ""),
        topology_of(spec.get("networkTopology")),
    )


def terms_of_pod(pod: Object) -> GangTerms | None:
    """The terms that a pod states for its gang; None when it states no minimum."""
    least = _first(_MIN_AVAILABLE, pod.annotations, pod.labels)
    if not least:
        return None
    own = group_of(pod)
    return GangTerms(max(0, _integer(least, 1)), bundle=bundle_of(own, pod.annotations.get(KOORDINATOR + "groups")))


def bundle_of(own: GroupId, text: str | None) -> tuple[GroupId, ...]:
    """The gangs that a groups annotation (a JSON list of ``namespace/name``) names; empty when it names no other."""
    try:
        names = json.loads(text) if text else []
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
    except (TypeError, ValueError):
        return default
