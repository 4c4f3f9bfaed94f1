"""What the annotations of Kueue's topology-aware scheduling ask of a pod set: how near to each other its pods have to be."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from gang_scheduler.domain.pods.pod_record import PodRecord

KUEUE = "kueue.x-k8s.io/"
_SLICE_LEVEL, _SLICE_SIZE, _GROUP = (
    KUEUE + "podset-slice-required-topology",
    KUEUE + "podset-slice-size",
    KUEUE + "podset-group-name",
)
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


class Nearness(StrEnum):
    """How much a pod set wants to be in one domain of a level."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCONSTRAINED = "unconstrained"


class PodSetAsk(NamedTuple):
    """All pods of a set inside one domain of ``level``; each ``slice_size`` of them inside one of ``slice_level``."""

    nearness: Nearness = Nearness.UNCONSTRAINED
    level: str = ""
    slice_level: str = ""
    slice_size: int = 1
    group: str = ""
    """Pod sets of one group go to one domain together."""


class PodSet(NamedTuple):
    """What makes pods of one gang members of one set: their role, what they ask, and the levels of their flavor's topology."""

    role: str
    ask: PodSetAsk
    levels: tuple[str, ...]


def ask_of(annotations: Mapping[str, str]) -> PodSetAsk:
    """What ``annotations`` ask for; a slice size that is no number from 1 on counts as 1."""
    for nearness in (Nearness.REQUIRED, Nearness.PREFERRED):
        level = annotations.get(f"{KUEUE}podset-{nearness}-topology")
        if level:
            break
    else:
        nearness, level = Nearness.UNCONSTRAINED, ""
    size = annotations.get(_SLICE_SIZE, "")
    whole = max(1, int(size)) if size.isdecimal() else 1
    return PodSetAsk(
        nearness, level, annotations.get(_SLICE_LEVEL, ""), whole, annotations.get(_GROUP, "") if level else ""
    )


def podset_of(record: PodRecord, levels: tuple[str, ...]) -> PodSet | None:
    """The set of a pod whose quota is of a flavor with these topology ``levels``; None where it has none."""
    return PodSet(record.role, ask_of(record.pod.annotations), levels) if levels else None


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
