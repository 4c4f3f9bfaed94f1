"""Queues as a tree with what each holds, and who waits in one of them. Pure: the time is given."""

from collections.abc import Iterable, Sequence

from kube import Manifest
from tidegate_cli.cells import age, dig, pairs, text
from tidegate_cli.tables import grid

_TITLES = ("QUEUE", "STATE", "WEIGHT", "ALLOCATED", "DESERVED", "CAPABILITY", "RUNNING", "WAITING")
_KUEUE_TITLES = ("CLUSTERQUEUE", "COHORT", "USED", "PENDING", "ADMITTED")
_GROUP_TITLES = ("GROUP", "NAMESPACE", "MIN", "AGE", "WHY")
_ROOT = "root"


def tree_lines(queues: Sequence[Manifest]) -> list[str]:
    """Volcano's Queues, children below their parents; queues of one parent by name."""
    children: dict[str, list[Manifest]] = {}
    names = {str(queue["metadata"]["name"]) for queue in queues}
    for queue in sorted(queues, key=lambda one: str(one["metadata"]["name"])):
        name = str(queue["metadata"]["name"])
        parent = str(dig(queue, "spec.parent") or ("" if name == _ROOT else _ROOT))
        children.setdefault(parent if parent in names and parent != name else "", []).append(queue)
    return grid(_TITLES, [_row(queue, depth) for queue, depth in _walk(children, "", 0)])


def _walk(children: dict[str, list[Manifest]], parent: str, depth: int) -> Iterable[tuple[Manifest, int]]:
    for queue in children.get(parent, ()):
        yield queue, depth
        yield from _walk(children, str(queue["metadata"]["name"]), depth + 1)


def _row(queue: Manifest, depth: int) -> list[str]:
    status = queue.get("status") or {}
    waiting = int(status.get("pending") or 0) + int(status.get("inqueue") or 0)
    return [
        "  " * depth + str(queue["metadata"]["name"]),
        text(status.get("state")),
        text(dig(queue, "spec.weight")),
        pairs(status.get("allocated")),
        pairs(dig(queue, "spec.deserved") or status.get("deserved")),
        pairs(dig(queue, "spec.capability")),
        str(status.get("running") or 0),
        str(waiting),
    ]


def cluster_queue_lines(queues: Sequence[Manifest]) -> list[str]:
    """Kueue's ClusterQueues, by cohort and name."""
    rows = [
        [
            str(queue["metadata"]["name"]),
            text(dig(queue, "spec.cohortName")),
            _flavors(queue),
            str(dig(queue, "status.pendingWorkloads") or 0),
            str(dig(queue, "status.admittedWorkloads") or 0),
        ]
        for queue in sorted(queues, key=lambda one: (text(dig(one, "spec.cohortName")), str(one["metadata"]["name"])))
    ]
    return grid(_KUEUE_TITLES, rows)


def _flavors(queue: Manifest) -> str:
    used = [
        f"{flavor['name']}/{one['name']}={one.get('total', 0)}"
        for flavor in dig(queue, "status.flavorsUsage") or ()
        for one in flavor.get("resources") or ()
    ]
    return ",".join(used) or "<none>"


def waiting_lines(groups: Iterable[Manifest], queue: str, now: int) -> list[str]:
    """The groups that wait in ``queue``, oldest first, each with its reason; nothing where none does."""
    waiting = [
        group
        for group in groups
        if (dig(group, "spec.queue") or "default") == queue
        and dig(group, "status.phase") in (None, "Pending", "Inqueue")
    ]
    waiting.sort(key=lambda one: (text(dig(one, "metadata.creationTimestamp")), str(one["metadata"]["name"])))
    rows = [
        [
            str(group["metadata"]["name"]),
            str(group["metadata"].get("namespace", "")),
            text(dig(group, "spec.minMember")),
            age(group, now),
            _reason(group),
        ]
        for group in waiting
    ]
    return grid(_GROUP_TITLES, rows) if rows else []


def _reason(group: Manifest) -> str:
    for condition in reversed(dig(group, "status.conditions") or ()):
        if condition.get("type") == "Unschedulable" and condition.get("status") == "True":
            return text(condition.get("message"), text(condition.get("reason")))
    return ""
