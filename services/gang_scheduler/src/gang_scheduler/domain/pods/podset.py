"""The pod sets of gangs that are laid out in the topology of their flavor."""

from collections.abc import Iterable
from typing import NamedTuple

from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.terms.pod_requests import PODS
from kube.pod_sets import PodSetAsk, ask_of

_INDEXES = (
    ("jobset.sigs.k8s.io/job-index",),
    (
        "training.kubeflow.org/replica-index",
        "batch.kubernetes.io/job-completion-index",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "volcano.sh/task-index",
    ),
)
"""The labels and annotations that number the pods of a set, the most significant first."""


class PodSet(NamedTuple):
    """What makes pods of one gang members of one set; ``levels`` are those of their flavor's topology, the widest first."""

    role: str
    ask: PodSetAsk
    levels: tuple[str, ...]
    requests: tuple[tuple[str, int], ...] = ()
    """What each pod asks for, by resource in the order of their names."""

    def beside(self, other: "PodSet | None") -> bool:
        """Whether both are of one role: their pods go to one domain, though they may not ask for as much."""
        return other is not None and (self.role, self.ask) == (other.role, other.ask)


def podset_of(record: PodRecord, levels: tuple[str, ...]) -> PodSet | None:
    """The set of a pod whose quota is of a flavor with these topology ``levels``; None where it has none."""
    if not levels:
        return None
    requests = tuple((name, amount) for name, amount in record.shape.requests.items() if name != PODS)
    return PodSet(record.role, ask_of(record.pod.annotations), levels, requests)


def podsets(records: Iterable[PodRecord]) -> dict[PodSet | None, list[PodRecord]]:
    """The records by set, each in the order of the numbers of its pods."""
    found: dict[PodSet | None, list[PodRecord]] = {}
    for record in records:
        found.setdefault(record.podset, []).append(record)
    return {podset: sorted(members, key=rank_of) for podset, members in found.items()}


def rank_of(record: PodRecord) -> tuple[tuple[int, ...], tuple[int, str, str, str]]:
    """The place of a pod in its set: by its number where it has one, else by its order in the gang."""
    labels, annotations = record.pod.labels, record.pod.annotations
    numbers = []
    for names in _INDEXES:
        texts = (labels.get(name) or annotations.get(name) or "" for name in names)
        numbers.append(next((int(text) for text in texts if text.isdecimal()), -1))
    return tuple(numbers), record.order
