"""What a user means by the words behind a command: ``pods``, ``pods a b``, ``job/ring pod/x``, ``pods,jobs``, ``all``."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import click

from kube import KINDS, Key, KindInfo, UnknownKind, find_kind
from kube.selectors import SelectorError, parse_fields, parse_labels

ALL = (
    "Pod",
    "PodGroup.scheduling.volcano.sh",
    "Job.batch.volcano.sh",
    "Job.batch",
    "CronJob.batch.volcano.sh",
    "CronJob.batch",
    "PyTorchJob.kubeflow.org",
    "TFJob.kubeflow.org",
    "MPIJob.kubeflow.org",
    "XGBoostJob.kubeflow.org",
    "PaddleJob.kubeflow.org",
    "JAXJob.kubeflow.org",
    "TrainJob.trainer.kubeflow.org",
    "JobSet.jobset.x-k8s.io",
    "JobFlow.flow.volcano.sh",
    "Deployment.apps",
    "ReplicaSet.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "Service",
    "InferenceService.serving.kserve.io",
)
"""What ``all`` means: what runs, and what makes it run."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Objects of one kind: those named, or all of the kind if ``names`` is empty."""

    kind: KindInfo
    names: tuple[str, ...] = ()

    def keys(self, namespace: str) -> list[Key]:
        """The keys of the named ones."""
        return [key_in(self.kind, name, namespace) for name in self.names]

    def place(self, namespace: str) -> str:
        """The namespace to list in: empty for a kind that lives in none."""
        return namespace if self.kind.namespaced else ""


def key_in(kind: KindInfo, name: str, namespace: str) -> Key:
    """The key of an object of ``kind``; kinds without namespaces have none."""
    return Key(kind.id, namespace if kind.namespaced else "", name)


def wanted_objects(words: Sequence[str]) -> list[Wanted]:
    """What the words mean. Raises click.UsageError for words that mean nothing."""
    if not words:
        raise click.UsageError("say what you mean: a kind such as pods, or KIND/NAME such as job/ring")
    if any("/" in word for word in words):
        return [Wanted(*one) for one in _slashed(words)]
    kinds = _kinds(words[0])
    return [Wanted(kind, tuple(dict.fromkeys(words[1:]))) for kind in kinds]


def named_objects(words: Sequence[str]) -> list[tuple[KindInfo, str]]:
    """The single objects that the words name: ``job/ring`` or ``job ring other``. Raises click.UsageError."""
    wanted = wanted_objects(words)
    nameless = next((one.kind.plural for one in wanted if not one.names), None)
    if nameless is not None:
        raise click.UsageError(f"which {nameless}? Name them: KIND/NAME, or KIND NAME")
    return [(one.kind, name) for one in wanted for name in one.names]


def one_object(words: Sequence[str]) -> tuple[KindInfo, str]:
    """The one object that the words name. Raises click.UsageError."""
    named = named_objects(words)
    if len(named) != 1:
        raise click.UsageError(f"name one object, not {len(named)}")
    return named[0]


def kind_named(word: str) -> KindInfo:
    """The kind that ``word`` means. Raises click.UsageError, with a guess at what was meant."""
    try:
        return find_kind(word)
    except UnknownKind:
        known = [name for info in KINDS.values() for name in (info.kind.lower(), info.plural, *info.short)]
        close = difflib.get_close_matches(word.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else "`tidegate api-resources` lists the kinds"
        raise click.UsageError(f"there is no kind {word!r}; {hint}") from None


def check_selectors(labels: str = "", fields: str = "") -> None:
    """Raise click.UsageError where a selector is none."""
    try:
        parse_labels(labels)
        parse_fields(fields)
    except SelectorError as error:
        raise click.UsageError(str(error)) from None


def _kinds(word: str) -> list[KindInfo]:
    kinds: list[KindInfo] = []
    for part in filter(None, word.split(",")):
        kinds += [KINDS[kind] for kind in ALL] if part == "all" else [kind_named(part)]
    if not kinds:
        raise click.UsageError(f"{word!r} names no kind")
    return list(dict.fromkeys(kinds))


def _slashed(words: Sequence[str]) -> list[tuple[KindInfo, tuple[str, ...]]]:
    found: list[tuple[KindInfo, tuple[str, ...]]] = []
    for word in words:
        kind, slash, name = word.partition("/")
        if not (kind and slash and name) or "/" in name:
            raise click.UsageError(f"{word!r} is to be KIND/NAME, as the others are")
        found.append((kind_named(kind), (name,)))
    return found
