"""The run policy of Kubeflow jobs: when they end, what is left of them, who runs them, in which queue they wait."""

from collections.abc import Iterable

from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.priority import warn_missing_class
from admission.domain.quantities import check_amounts
from admission.domain.queue_choice import check_queue
from admission.domain.shapes import AMOUNTS, TEXT, TRUTH, WHOLE, closed, one_of, within
from admission.domain.world import Review
from kube import Manifest

RUN_POLICY = closed(
    cleanPodPolicy=TEXT,
    ttlSecondsAfterFinished=WHOLE,
    activeDeadlineSeconds=WHOLE,
    backoffLimit=WHOLE,
    suspend=TRUTH,
    managedBy=TEXT,
    schedulingPolicy=closed(
        minAvailable=WHOLE, queue=TEXT, minResources=AMOUNTS, priorityClass=TEXT, scheduleTimeoutSeconds=WHOLE
    ),
)
CLEAN_POD_POLICIES = ("None", "Running", "All")
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
TRAINING_OPERATOR, MPI_OPERATOR = "kubeflow.org/training-operator", "kubeflow.org/mpi-operator"
WAY_OUT = "delete the job and create it anew"


def default_run_policy(spec: Manifest) -> None:
    """Finished pods stay, the job runs at once."""
    policy = spec.setdefault("runPolicy", {})
    policy.setdefault("cleanPodPolicy", "None")
    policy.setdefault("suspend", False)


def check_run_policy(review: Review, operator: str) -> Iterable[FieldError]:
    """Enums and bounds hold, the queue takes the job, and queue and manager stay what they are."""
    policy, path = review.spec["runPolicy"], "spec.runPolicy"
    scheduling = policy.get("schedulingPolicy") or {}
    yield from one_of(f"{path}.cleanPodPolicy", policy["cleanPodPolicy"], CLEAN_POD_POLICIES)
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        yield from within(f"{path}.{name}", policy.get(name), 0)
    yield from one_of(f"{path}.managedBy", policy.get("managedBy"), (operator, MULTIKUEUE))
    yield from _check_scheduling(f"{path}.schedulingPolicy", scheduling)
    queue = scheduling.get("queue")
    if review.creating:
        if queue:
            yield from check_queue(f"{path}.schedulingPolicy.queue", review, queue)
        return
    before = review.before("spec", "runPolicy", "schedulingPolicy", "queue")
    yield from fixed(f"{path}.schedulingPolicy.queue", before, queue, WAY_OUT)
    manager = review.before("spec", "runPolicy", "managedBy")
    yield from fixed(f"{path}.managedBy", manager, policy.get("managedBy"), WAY_OUT)


def _check_scheduling(path: str, scheduling: Manifest) -> Iterable[FieldError]:
    yield from within(f"{path}.minAvailable", scheduling.get("minAvailable"), 0)
    yield from within(f"{path}.scheduleTimeoutSeconds", scheduling.get("scheduleTimeoutSeconds"), 0)
    yield from check_amounts(f"{path}.minResources", scheduling.get("minResources"))


def warn_run_policy(review: Review) -> Iterable[str]:
    scheduling = review.spec["runPolicy"].get("schedulingPolicy") or {}
    where = "spec.runPolicy.schedulingPolicy.priorityClass"
    return warn_missing_class(where, review.world, scheduling.get("priorityClass"))
