"""To what a pod belongs: its gang, its queues, its job, its owners, as labels, annotations and references tell it."""

from collections.abc import Iterator

from kube import Key, Object, Store, is_namespaced, kind_id

GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
QUOTA_NAME = "quota.scheduling.koordinator.sh/name"
QUOTA_PARENT = "quota.scheduling.koordinator.sh/parent"
LOCAL_QUEUE_NAME = "kueue.x-k8s.io/queue-name"
GANG_NAME = "gang.scheduling.koordinator.sh/name"
GANG_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
TASK = "volcano.sh/task-spec"

_GROUP_NAMES = (
    *(GROUP_NAME, "scheduling.volcano.sh/group-name", GANG_NAME),
    *("pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io", "scheduling.x-k8s.io/pod-group"),
)
_GROUP_KINDS = ("PodGroup.scheduling.volcano.sh", "PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.sigs.k8s.io")
_JOB_LABELS = ("volcano.sh/job-name", "training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name")
_JOB_GROUPS = ("batch.volcano.sh", "kubeflow.org", "trainer.kubeflow.org")


def mark(pod: Object, *names: str) -> str:
    """The first of these annotations or labels that the pod carries; "" where it carries none."""
    for name in names:
        found = pod.annotations.get(name) or pod.labels.get(name)
        if found:
            return found
    return ""


def node_of(pod: Object) -> str:
    """The node that the pod is bound to; "" while it is not."""
    return str(pod.spec.get("nodeName") or "")


def phase_of(pod: Object) -> str:
    """The pod's phase; a pod that nothing is said of is Pending."""
    return str(pod.status.get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    """Whether the pod has run to its end and holds nothing any more."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    """Whether the pod's Ready condition is true."""
    conditions = pod.status.get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def group_of(pod: Object) -> str:
    """The name of the pod's gang, in its own namespace; "" where it is in none."""
    return mark(pod, *_GROUP_NAMES).rpartition("/")[2]


def group_object(store: Store, namespace: str, name: str) -> Object | None:
    """The PodGroup of that name, of whichever group."""
    found = (store.get(Key(kind, namespace, name)) for kind in _GROUP_KINDS)
    return next((group for group in found if group), None)


def queue_of(pod: Object, store: Store) -> str:
    """The Volcano queue that the pod is charged to: its gang's, else its own, else its namespace's, else ``default``."""
    group = group_object(store, pod.namespace, group_of(pod)) if group_of(pod) else None
    namespace = store.get(Key("Namespace", "", pod.namespace))
    named = (group.spec.get("queue") if group else None) or mark(pod, QUEUE_NAME)
    return str(named or (mark(namespace, QUEUE_NAME) if namespace else "") or "default")


def queues_of(pod: Object, store: Store) -> set[str]:
    """Every queue, quota and local queue that the pod is in."""
    return {queue_of(pod, store), mark(pod, QUOTA_NAME), mark(pod, LOCAL_QUEUE_NAME)} - {""}


def owners_of(item: Object, store: Store) -> Iterator[Key]:
    """The keys of the object's owners, of their owners, and so on."""
    seen: set[Key] = set()
    waiting = [item]
    while waiting:
        current = waiting.pop()
        for reference in current.metadata.get("ownerReferences") or ():
            kind = kind_id(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
            key = Key(kind, item.namespace if is_namespaced(kind) else "", str(reference.get("name", "")))
            if key in seen:
                continue
            seen.add(key)
            yield key
            owner = store.get(key)
            if owner:
                waiting.append(owner)


def jobs_of(pod: Object, store: Store) -> set[str]:
    """The names of the Volcano and Kubeflow jobs that the pod is of."""
    owners = {key.name for key in owners_of(pod, store) if key.kind.partition(".")[2] in _JOB_GROUPS}
    return (owners | {pod.labels.get(label, "") for label in _JOB_LABELS}) - {""}


def pods_of(store: Store) -> list[Object]:
    """Every pod, by namespace and name."""
    return sorted(store.of_kind("Pod").values(), key=lambda pod: pod.key)
