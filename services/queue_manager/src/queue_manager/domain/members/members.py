"""Pods as the books see them: in whose sum each belongs, and whether it waits, holds room, or neither."""

from dataclasses import dataclass
from enum import IntEnum

from kube import Key, Manifest, Object
from kube.pods import is_finished, same_but_for_node
from queue_manager.domain.pod_requests import PodRequests
from queue_manager.domain.quotas.elastic_quota import quota_named_by
from resources import Amounts

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
BARE = "Queue"
"""The kind in the key of a sum of pods that have no group; its name is the queue that they name, "" for none."""

LOCAL_QUEUE = "kueue.x-k8s.io/queue-name"
COHORTS = "cohort"

_QUEUE_NAMES = (QUEUE_NAME, "volcano.sh/queue-name")
GROUP = "PodGroup.scheduling.volcano.sh"
_GROUP_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_TASK = "volcano.sh/task-spec"


class Place(IntEnum):
    """Where a pod stands, for its queue's books."""

    PENDING = 0
    """Wants a node."""
    BOUND = 1
    """Has one, until it has finished or is gone."""
    IDLE = 2
    """Asks for nothing: gated, finished, or deleted before it had a node."""


@dataclass(frozen=True, slots=True)
class Member:
    """One pod in the books."""

    tally: Key
    place: Place
    request: Amounts
    spec: Manifest
    """The pod's, except for its node."""
    role: str = ""


def read_member(pod: Object, requests: PodRequests) -> Member:
    """The entry of ``pod``; ``requests`` remembers what pods of its template ask for."""
    group = group_named_by(pod)
    if group:
        return Member(Key(GROUP, pod.namespace, group), place_of(pod), requests.of(pod), pod.spec, role_of(pod))
    return Member(Key(BARE, pod.namespace, queue_named_by(pod)), place_of(pod), requests.of(pod), pod.spec)


def role_of(pod: Object) -> str:
    """The task of its job that the pod belongs to, "" for none."""
    return pod.annotations.get(_TASK) or pod.labels.get(_TASK) or ""


def group_named_by(pod: Object) -> str:
    """The pod group that the pod names, "" for none."""
    annotations = pod.annotations
    return annotations.get(_GROUP_NAMES[0]) or annotations.get(_GROUP_NAMES[1]) or ""


def place_of(pod: Object) -> Place:
    """Where the pod stands."""
    if is_finished(pod):
        return Place.IDLE
    spec = pod.spec
    if spec.get("nodeName"):
        return Place.BOUND
    return Place.IDLE if pod.deleting or spec.get("schedulingGates") else Place.PENDING


def queue_named_by(pod: Object) -> str:
    """The queue that the pod itself names, "" for none; an elastic quota or a LocalQueue wins over a Volcano queue."""
    if not (pod.labels or pod.annotations):
        return ""
    foreign = foreign_queue(pod)
    if foreign:
        return foreign
    for name in _QUEUE_NAMES:
        queue = pod.annotations.get(name) or pod.labels.get(name)
        if queue:
            return queue
    return ""


def foreign_queue(item: Object) -> str:
    """The LocalQueue or elastic quota that a pod or group is in by its labels, as a name in the books; "" for none."""
    local = item.labels.get(LOCAL_QUEUE)
    return f"{COHORTS}/{local}" if local else quota_named_by(item.labels)


def domain_of(queue: str) -> str:
    """Which kind of tree a name in the books belongs to: "" for Volcano's queues, ``quota``, ``cohort``."""
    return queue.partition("/")[0] if "/" in queue else ""


def is_same(old: Object, new: Object) -> bool:
    """Whether the pod asks for the same in the name of the same: most changes are of its node and its status."""
    return old.metadata is new.metadata and (old.body is new.body or same_but_for_node(old.spec, new.spec))
