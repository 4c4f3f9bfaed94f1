"""The pod group of a job: its members start together, in the queue and with the priority that the job names."""

from collections.abc import Sequence
from dataclasses import dataclass

from job_controller.domain.kubeflow.changes import Changes, owned_metadata
from job_controller.domain.kubeflow.run_policy import SchedulingPolicy
from job_controller.domain.reconcile import View
from kube import Key, Manifest, Object
from kube.last_applied import without_last_applied
from kube.resource_quotas import minimum_counts
from kube.runtime_classes import completed
from kube.words import counted
from resources import Amounts, QuantityError, add, format_amounts, times

POD_GROUP = "PodGroup.scheduling.volcano.sh"
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"

# Labels of a job that say who pays for its pods.
QUEUE_LABELS = (
    QUEUE_NAME,
    "kueue.x-k8s.io/queue-name",
    "kueue.x-k8s.io/priority-class",
    "quota.scheduling.koordinator.sh/name",
)


@dataclass(frozen=True, slots=True)
class Role:
    """So many pods of one spec; roles come in the order in which the smallest group is filled."""

    count: int
    pod_spec: Manifest


def gang_annotations(group: str, role: str) -> dict[str, str]:
    """What makes a pod a member of ``group``, in the role ``role``."""
    return {GROUP_NAME: group, TASK_SPEC: role}


def carried_labels(job: Object) -> dict[str, str]:
    """The job's labels that name a quota or queue, for its pods."""
    return {name: job.labels[name] for name in QUEUE_LABELS if name in job.labels}


def carried_annotations(job: Object) -> dict[str, str]:
    """The job's annotation that names a queue, for its pods."""
    return {QUEUE_NAME: job.annotations[QUEUE_NAME]} if QUEUE_NAME in job.annotations else {}


def group_key(job: Object) -> Key:
    return Key(POD_GROUP, job.namespace, job.name)


def group_manifest(job: Object, spec: Manifest) -> Manifest:
    """The pod group named as the job, with the job's labels and annotations: they may say more about its scheduling."""
    annotations = without_last_applied(job.annotations)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": owned_metadata(job, job.name, dict(job.labels), annotations),
        "spec": spec,
    }


def ensure_group(changes: Changes, group: Object | None, spec: Manifest, title: str) -> None:
    """Make the group of the job, or bring it to what the job asks for now."""
    if group is None:
        changes.create(group_manifest(changes.job, spec))
        changes.say("PodGroupWanted", "JobCreated", f"{title} asks queue {spec['queue']} to let in {_pods(spec)}")
    elif patch := _difference(group.spec, spec):
        changes.patch(group, {"spec": patch})
        changes.say("PodGroupChanged", "JobChanged", f"{title} needs at least {_pods(spec)} now")


def _difference(before: Manifest, wanted: Manifest) -> Manifest:
    """The merge patch after which ``before`` says what ``wanted`` says; what only ``before`` names is another's."""
    patch = {name: value for name, value in wanted.items() if before.get(name) != value}
    if "minResources" in patch:
        gone = {name: None for name in before.get("minResources") or {} if name not in wanted["minResources"]}
        patch["minResources"] = {**wanted["minResources"], **gone}
    return patch


def group_spec(job: Object, policy: SchedulingPolicy, roles: Sequence[Role], smallest: int, view: View) -> Manifest:
    """The spec of the group of ``roles`` that may start with ``smallest`` pods, unless the policy says another number."""
    smallest = smallest if policy.min_available is None else policy.min_available
    spec: Manifest = {"minMember": smallest, "queue": queue_of(job, policy, view)}
    priority = policy.priority_class or next(
        (role.pod_spec["priorityClassName"] for role in roles if role.pod_spec.get("priorityClassName")), ""
    )
    if priority:
        spec["priorityClassName"] = priority
    least = policy.min_resources or _smallest_demand(roles, smallest, view)
    return {**spec, "minResources": least} if least else spec


def queue_of(job: Object, policy: SchedulingPolicy, view: View) -> str:
    """The Volcano queue: the policy's, else the job's label or annotation, else the namespace's, else ``default``."""
    namespace = view.get(Key("Namespace", "", job.namespace))
    places = (job.labels, job.annotations, namespace.annotations if namespace else {})
    return policy.queue or next((place[QUEUE_NAME] for place in places if place.get(QUEUE_NAME)), "default")


def is_let_in(group: Object | None) -> bool:
    """Whether the queue has let the group in, so that its pods may be made."""
    return group is not None and not group.deleting and group.status.get("phase") not in (None, "", "Pending")


def _smallest_demand(roles: Sequence[Role], smallest: int, view: View) -> Manifest:
    """What the first ``smallest`` pods ask for, the most important first, then in the order of roles."""
    total: Amounts = {}
    try:
        for role in sorted(roles, key=lambda role: -_priority(role.pod_spec, view)):
            taken = min(role.count, smallest)
            total = add(total, times(minimum_counts(completed(role.pod_spec, view.get)), taken))
            smallest -= taken
    except QuantityError:
        return {}  # admission refuses such templates; a group without minResources is judged by its pods
    return format_amounts(total)


def _priority(pod_spec: Manifest, view: View) -> int:
    given = pod_spec.get("priority")
    if isinstance(given, int):
        return given
    found = view.get(Key("PriorityClass.scheduling.k8s.io", "", pod_spec.get("priorityClassName") or ""))
    return int(found.body.get("value") or 0) if found else 0


def _pods(spec: Manifest) -> str:
    return counted(spec["minMember"], "pod")
