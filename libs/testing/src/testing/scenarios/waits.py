"""Whether everybody who waits was told why."""

from collections.abc import Iterable, Iterator

from kube import Object, Store
from kube.scheduling_pause import SWITCH, pause_of
from testing.scenarios.membership import group_object, group_of, node_of, phase_of

UNSCHEDULED = "PodScheduled"


def unexplained(pods: Iterable[Object], store: Store, schedulers: Iterable[str]) -> list[str]:
    """Those of the pods that wait for a node of one of these schedulers, and were not told why, in words.

    Who is gated waits for the owner of the gate. A member of a group is told with its group. While scheduling is paused
    all wait for that, which is said in one place.
    """
    if pause_of(store.get(SWITCH)) is not None:
        return []
    served = frozenset(schedulers)
    return [
        f"pod {pod.name} waits, and nothing says why"
        for pod in pods
        if _waits(pod) and str(pod.spec.get("schedulerName") or "") in served and not any(_reasons(pod, store))
    ]


def _waits(pod: Object) -> bool:
    return not node_of(pod) and phase_of(pod) == "Pending" and not pod.deleting and not pod.spec.get("schedulingGates")


def _reasons(pod: Object, store: Store) -> Iterator[str]:
    """What the conditions of the pod and of its group say against it."""
    group = group_object(store, pod.namespace, group_of(pod)) if group_of(pod) else None
    for item in (pod, *((group,) if group is not None else ())):
        for condition in item.status.get("conditions") or ():
            if condition.get("message") and (
                condition.get("status") == "False" or condition.get("type") != UNSCHEDULED
            ):
                yield str(condition["message"])
