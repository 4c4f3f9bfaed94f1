"""Gathering what one look at a job changes into one decision, which the cluster applies whole or not at all."""

from dataclasses import dataclass, field

from job_controller.domain.kubeflow.conditions import status_words, with_condition
from job_controller.domain.reconcile import Actions
from kube import Decision, Key, Manifest, Mutation, Object, Verb, key_of, merge
from kube.owners import owner_reference


@dataclass(slots=True)
class Changes:
    """The changes to one job and to what it owns. The first ``say`` names the decision."""

    job: Object
    now: int
    mutations: list[Mutation] = field(default_factory=list)
    wake_at: int | None = None
    _status: Manifest = field(default_factory=dict)
    _deleted: set[Key] = field(default_factory=set)
    _headline: tuple[str, str, str] | None = None

    @property
    def status(self) -> Manifest:
        """The job's status as it will be."""
        return merge(self.job.status, self._status)

    def say(self, name: str, reason: str, message: str) -> None:
        """What is decided, for people; only the first call counts."""
        if self._headline is None:
            self._headline = (name, reason, message)

    def create(self, manifest: Manifest) -> None:
        self.mutations.append(Mutation(Verb.CREATE, key_of(manifest), manifest=manifest))

    def delete(self, item: Object) -> None:
        """Delete ``item``, once; what is being deleted already is left alone."""
        if not item.deleting and item.key not in self._deleted:
            self._deleted.add(item.key)
            self.mutations.append(Mutation(Verb.DELETE, item.key, uid=item.uid))

    def patch(self, item: Object, patch: Manifest) -> None:
        self.mutations.append(Mutation(Verb.PATCH, item.key, uid=item.uid, patch=patch))

    def set_status(self, patch: Manifest) -> None:
        """Lay ``patch`` over the status; None removes a field."""
        self._status = merge_keeping_none(self._status, patch)

    def condition(self, kind: str, holds: bool, reason: str, message: str) -> None:
        """Set a condition of the job; one that says the same already keeps its times."""
        before = self.status.get("conditions") or []
        after = with_condition(before, kind, holds, reason, message, self.now)
        if after is not before:
            self._status["conditions"] = after

    def wake(self, at: int) -> None:
        """Look again at ``at`` milliseconds, or earlier if something else asks for it."""
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    def actions(self) -> Actions:
        """The decision, if anything changes at all, and when to look again."""
        mutations = list(self.mutations)
        if self.status != self.job.status:
            mutations.append(Mutation(Verb.STATUS, self.job.key, uid=self.job.uid, patch=self._status))
        if not mutations:
            return Actions(wake_at=self.wake_at)
        told = f"{self.job.key}: {status_words(self.status)}"
        name, reason, message = self._headline or ("JobStatusChanged", "StatusChanged", told)
        decision = Decision(name, self.job.key, self.job.uid, reason, message, tuple(mutations))
        return Actions((decision,), self.wake_at)


def merge_keeping_none(old: Manifest, patch: Manifest) -> Manifest:
    """One merge patch laid over another: removals (None) stay removals."""
    result = dict(old)
    for name, value in patch.items():
        before = result.get(name)
        nested = isinstance(value, dict) and isinstance(before, dict)
        result[name] = merge_keeping_none(before, value) if nested and before else value
    return result


def owned_metadata(owner: Object, name: str, labels: dict[str, str], annotations: dict[str, str]) -> Manifest:
    """The metadata of an object that ``owner`` controls, in its namespace."""
    metadata: Manifest = {"name": name, "namespace": owner.namespace, "ownerReferences": [owner_reference(owner)]}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return metadata
