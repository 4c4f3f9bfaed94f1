"""Pods that end by themselves before long, by what their owners say: for room that they leave nobody has to move."""

from descheduler.domain.cluster.gangs import VOLCANO_GROUP, gang_name
from descheduler.domain.cluster.pod_traits import began_at
from descheduler.domain.plan import Plan
from kube import Key, Object
from kube.running_estimates import stated_length


def expected_ends(plan: Plan, until: int) -> list[tuple[int, Object]]:
    """The running pods that should end after now and by ``until``, each with when, in order. Who is late already does not count."""
    found = []
    for pod in plan.view.placed():
        end = _end(plan, pod)
        if end is not None and plan.now < end <= until and pod.key not in plan.moving:
            found.append((end, pod))
    return sorted(found, key=lambda one: (one[0], one[1].key))


def _end(plan: Plan, pod: Object) -> int | None:
    """The pod's own word comes first, then that of its group, then that of whoever makes it."""
    workload = plan.arbiter.workloads.of(pod)
    group = plan.view.store.get(Key(VOLCANO_GROUP, pod.namespace, gang_name(pod)))
    owners = [group, workload.item if workload is not None else None]
    length = stated_length(pod.annotations, *(owner.annotations for owner in owners if owner is not None))
    return began_at(pod) + length if length is not None and began_at(pod) else None
