"""Commands of the Volcano bus: one action for one job or queue."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.queue_choice import ROOT, find_queue, state_of
from admission.domain.shapes import TEXT, TRUTH, closed, one_of
from admission.domain.world import Review
from kube import Key, kind_id

COMMAND = closed(
    "metadata",
    "spec",
    "status",
    apiVersion=TEXT,
    kind=TEXT,
    action=TEXT,
    target=closed("blockOwnerDeletion", apiVersion=TEXT, kind=TEXT, name=TEXT, uid=TEXT, controller=TRUTH),
    reason=TEXT,
    message=TEXT,
)
JOB_ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob", "ResumeJob", "SyncJob",
)  # fmt: skip
QUEUE_ACTIONS = ("OpenQueue", "CloseQueue")
JOB, QUEUE = "Job.batch.volcano.sh", "Queue.scheduling.volcano.sh"
ACTIONS = {JOB: JOB_ACTIONS, QUEUE: QUEUE_ACTIONS}
BY_SHORT_KIND = {"Job": JOB, "Queue": QUEUE}


def default_command(review: Review) -> None:
    """A target named without its uid is the one that has the name now."""
    target = review.manifest.get("target") or {}
    found = review.world.get(_key(review))
    if found is not None and target and not target.get("uid"):
        target["uid"] = found.uid


def check_command(review: Review) -> Iterable[FieldError]:
    """The target exists, is the one that is meant, and the action is one for its kind."""
    target, key = review.manifest.get("target") or {}, _key(review)
    action = review.manifest.get("action") or ""
    if not target.get("name"):
        yield FieldError("target.name", None, "is required; name the job or queue by kind and name")
        return
    if key.kind not in ACTIONS:
        yield FieldError("target.kind", target.get("kind"), "must be a Volcano Job or Queue")
        return
    yield from one_of("action", action, ACTIONS[key.kind])
    found = review.world.get(key)
    if found is None and key != Key(QUEUE, "", "default"):
        yield FieldError("target.name", key.name, f"{key} does not exist; name one that does")
    elif found is not None and target.get("uid") not in (None, "", found.uid):
        yield FieldError(
            "target.uid", target["uid"], f"{key} is another object by now ({found.uid}); leave the uid out"
        )
    if key.kind == QUEUE:
        yield from _check_queue_action(review, key.name, action)


def _check_queue_action(review: Review, name: str, action: str) -> Iterable[FieldError]:
    if name == ROOT and action == "CloseQueue":
        yield FieldError("action", action, "the root queue cannot be closed")
    queue = find_queue(review.world, name)
    parent = find_queue(review.world, str(queue.spec.get("parent") or ROOT)) if queue else None
    if action == "OpenQueue" and parent is not None and name != ROOT and state_of(parent) != "Open":
        yield FieldError("action", action, f"the parent queue {parent.name} is {state_of(parent)}; open it first")


def _key(review: Review) -> Key:
    target = review.manifest.get("target") or {}
    kind = str(target.get("kind") or "")
    version = target.get("apiVersion")
    full = kind_id(str(version), kind) if version else BY_SHORT_KIND.get(kind, kind)
    namespace = "" if full == QUEUE else review.key.namespace
    return Key(full, namespace, str(target.get("name") or ""))
