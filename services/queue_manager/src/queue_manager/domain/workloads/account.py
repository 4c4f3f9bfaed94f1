"""What a Workload object (kueue.x-k8s.io) says about the work that it stands for, and which Workload stands for what.

Users and admission checks steer work through it: ``active``, ``maximumExecutionTimeSeconds``, the answers of checks. It keeps
what no other object does: how often the work was sent away and since when, and until when it is to stay away.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kube import Event, Key, Manifest, Object, parse_time

WORKLOAD = "Workload.kueue.x-k8s.io"

SOURCE = "tidegate.dev/workload-of"
"""The annotation of a Workload that was made for a pod, pod group or Job: ``Kind.group/name``. One without it is its own."""

ANSWER = "checks.tidegate.dev/"
"""Before the name of an admission check: the annotation of a Workload by which that check is answered, ``State`` or
``State: message``. The states are those of Kueue's ``status.admissionChecks``, which is read, too."""

READY, PENDING, RETRY, REJECTED = "Ready", "Pending", "Retry", "Rejected"
BACKING_OFF = ("PodsReadyTimeout", "AdmissionCheck")
"""The reasons of an eviction after which work stays away for a while, and queues from then on."""


class Answer(NamedTuple):
    """What an admission check says: its state, and the sentence for people."""

    state: str
    message: str = ""


class Account(NamedTuple):
    """One Workload object as far as it steers. Times are milliseconds since the epoch; 0 where there is none."""

    key: Key | None = None
    uid: str = ""
    active: bool = True
    most_ms: int = 0
    """How long it may run in all; 0 for ever."""
    spent_ms: int = 0
    """How long it ran before it was sent away."""
    answers: tuple[tuple[str, Answer], ...] = ()
    attempts: int = 0
    """How often it was sent away for a reason after which it backs off."""
    resume_at: int = 0
    queued_at: str = ""
    """When it was sent away the last time for such a reason, RFC 3339; it queues from then on."""

    def answer(self, check: str) -> Answer:
        """What the check says; Pending where it says nothing."""
        return dict(self.answers).get(check, _SILENT)


_SILENT = Answer(PENDING)
FREE = Account()
"""The account of work that has no Workload object yet."""


@dataclass(slots=True)
class Accounts:
    """The Workload objects by what they stand for. ``by_eviction`` lets those that were sent away queue up anew."""

    by_eviction: bool = True
    objects: dict[Key, Object] = field(default_factory=dict)
    _read: dict[Key, Account] = field(default_factory=dict)

    def fold(self, event: Event) -> Key | None:
        """Take in a change of a Workload; returns what it stands for, None where that is nobody's business."""
        source = source_of(event.object)
        if source is None:
            return None
        if event.new is None:
            self.forget(source)
        else:
            self.objects[source] = event.new
            if source not in self._read or not _steers_alike(event.old, event.new):
                self._read[source] = read_account(event.new, self.by_eviction)
        return source

    def forget(self, source: Key) -> None:
        """No Workload stands for it."""
        self.objects.pop(source, None)
        self._read.pop(source, None)

    def of(self, source: Key) -> Account:
        return self._read.get(source, FREE)


def source_of(item: Object) -> Key | None:
    """What the Workload ``item`` stands for: an object of ours, or itself; None for one that others made for their jobs."""
    text = item.annotations.get(SOURCE)
    if text:
        kind, _, name = str(text).rpartition("/")
        return Key(kind, item.namespace, name)
    return None if item.controller else item.key


_STEERING = frozenset(("requeueState", "accumulatedPastExecutionTimeSeconds", "admissionChecks"))
"""The fields of the status that an account is read from, besides the condition Evicted."""


def _steers_alike(old: Object | None, new: Object) -> bool:
    """Whether both versions of a Workload have the same account, as far as that is plain to see: most changes are of no
    other field than the status, in which nothing was ever sent away or checked."""
    if old is None or old.metadata is not new.metadata or old.body is not new.body:
        return False
    return not (_is_steered(old.status) or _is_steered(new.status))


def _is_steered(status: Manifest) -> bool:
    return not _STEERING.isdisjoint(status) or bool(condition_of(status, "Evicted"))


def read_account(item: Object, by_eviction: bool = True) -> Account:
    """The account of a Workload object; what makes no sense in it counts as not said."""
    spec, status = item.spec, item.status
    requeue = status.get("requeueState") or {}
    evicted = condition_of(status, "Evicted")
    queued = by_eviction and evicted.get("reason") in BACKING_OFF
    return Account(
        item.key,
        item.uid,
        spec.get("active") is not False,
        _seconds(spec.get("maximumExecutionTimeSeconds")),
        _seconds(status.get("accumulatedPastExecutionTimeSeconds")),
        _answers(item),
        _whole(requeue.get("count")),
        moment(requeue.get("requeueAt")),
        str(evicted.get("lastTransitionTime") or "") if queued else "",
    )


def condition_of(status: Manifest, kind: str) -> Manifest:
    """The condition of type ``kind``; empty where there is none."""
    for item in status.get("conditions") or ():
        if item.get("type") == kind:
            found: Manifest = item
            return found
    return {}


def moment(text: Any) -> int:
    """An RFC 3339 time in milliseconds since the epoch; 0 for what is none."""
    try:
        return parse_time(str(text)) if text else 0
    except ValueError:
        return 0


def _answers(item: Object) -> tuple[tuple[str, Answer], ...]:
    if not item.status.get("admissionChecks") and ANSWER not in "\n".join(item.annotations):
        return ()
    found = {
        str(check.get("name")): Answer(str(check.get("state") or PENDING), str(check.get("message") or ""))
        for check in item.status.get("admissionChecks") or ()
    }
    for name, text in item.annotations.items():
        if name.startswith(ANSWER):
            state, _, message = str(text).partition(":")
            found[name.removeprefix(ANSWER)] = Answer(state.strip(), message.strip())
    return tuple(sorted(found.items()))


def _seconds(value: Any) -> int:
    return _whole(value) * 1000


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
