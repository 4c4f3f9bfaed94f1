"""What people are told of a workload of a ClusterQueue: why it has no quota, where it stands, who has that, when its turn comes."""

from collections.abc import Iterable

from kube import Key, Manifest
from queue_manager.domain.admitting.quota_outlook import QuotaOutlook
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import UNLIMITED, Node
from queue_manager.domain.cohorts.flavor_choice import WaitReason
from queue_manager.domain.workloads.workload import Workload
from resources import Amounts
from resources.amounts import format_amount

NAMED = 3
_WAYS = {
    WaitReason.NO_FLAVOR: "let a flavor of ClusterQueue {queue} suit the pods (its node labels, taints and resources), or change them",
    WaitReason.WAITING: "wait until work of the queue or its cohort ends, or have the nominal quota or borrowing limit raised",
    WaitReason.TOO_LARGE: "waiting does not help: ask for less at once, or have the quota or borrowing limit of {queue} raised",
    WaitReason.VICTIMS: "nothing has to be done: the quota is kept, and is taken when those who leave it are gone",
    WaitReason.MISCONFIGURED: "correct ClusterQueue {queue}, its cohort or its flavors: see its conditions",
    WaitReason.SUSPENDED: "have the stopPolicy of ClusterQueue {queue} or of the LocalQueue taken back",
    WaitReason.BEHIND_HEAD: "wait for the head, take it out of the queue, or give this a higher priority: nobody passes it here",
    WaitReason.TOPOLOGY: "wait until nodes of the flavor are free, ask for fewer pods or a wider level, or label more nodes",
    WaitReason.INACTIVE: "activate its Workload again (spec.active: true), once what it was deactivated for is mended",
    WaitReason.BACKING_OFF: "nothing has to be done: it is tried again by itself, later each time",
    WaitReason.CHECKS: "whoever answers its admission checks has to say that they are Ready",
}


def cohort_answer(outlook: QuotaOutlook, key: Key) -> Manifest | None:
    """The verdict on the workload ``key``, an empty one when it is over; None where it is in no ClusterQueue."""
    books = outlook.books
    workload = books.workloads.get(key)
    if workload is None:
        return None
    if workload.over:
        return {}
    name = books.queue_of(workload)
    answer: Manifest = {"kind": key.kind.partition(".")[0], "name": key.name, "queue": f"cohort/{name}"}
    answer["quotaOf"] = _levels(books, name, workload)
    holds = books.held.get(key)
    if holds is not None:
        has = f"it holds quota of ClusterQueue {holds.cluster_queue}"
        if workload.let_in:
            return answer | {"verdict": "LetIn", "rule": "", "message": has}
        rule, ways = str(WaitReason.CHECKS), [_WAYS[WaitReason.CHECKS]]
        return answer | {
            "verdict": "NotLetIn",
            "rule": rule,
            "message": f"{has}, and waits for its admission checks",
            "waysOut": ways,
        }
    reason, message = _verdict(books, name, workload)
    ways = [_WAYS[known].format(queue=name) for known in _WAYS if known == reason]
    if not name:
        ways = [f"create LocalQueue {workload.local_queue} in namespace {key.namespace}, or name one that is there"]
    answer |= {"verdict": "NotLetIn", "rule": str(reason), "message": message, "waysOut": ways}
    answer |= _line(books, name, workload) | {"holders": _holders(books, name, workload)}
    return answer | outlook.manifest(workload)


def _verdict(books: CohortBooks, name: str, workload: Workload) -> tuple[str, str]:
    """Why it waits, by what was found last; what it was told may have other numbers."""
    line, found = books.lines.get(name), books.stray.get(workload.key)
    if line is not None and workload.key in line.members:
        found = line.ranks[workload.shape].verdict
    if found is not None:
        return found.reason, found.message
    return workload.told or (WaitReason.EVALUATING, "its quota has not been looked for yet")


def _line(books: CohortBooks, name: str, workload: Workload) -> Manifest:
    line = books.lines.get(name)
    if line is None or workload.key not in line.members:
        return {}
    order = sorted(line.members.values(), key=lambda member: member.order)
    position = next(place for place, member in enumerate(order, 1) if member.key == workload.key)
    ahead = [f"{one.key.namespace}/{one.key.name}" for one in order[: position - 1][:NAMED]]
    return {"position": position, "waitingAtGate": len(order), "ahead": ahead}


def _levels(books: CohortBooks, name: str, workload: Workload) -> list[Manifest]:
    """The ClusterQueue and the cohorts above it: per flavor and resource quota, what is used, what is left for it."""
    node = books.tree.queues.get(name)
    asked = {resource for resource, _ in workload.shape.requests}
    return [_level(one, asked) for one in (node.path() if node is not None else ())]


def _level(node: Node, asked: Iterable[str]) -> Manifest:
    wanted, found = set(asked), []
    for flavor, resource in sorted(node.subtree):
        if wanted and resource not in wanted:
            continue
        place = (flavor, resource)
        left = node.available(place)
        found.append(
            {
                "flavor": flavor,
                "resource": resource,
                "quota": format_amount(resource, node.subtree[place]),
                "used": format_amount(resource, node.usage.get(place, 0)),
                "left": "unlimited" if left >= UNLIMITED // 2 else format_amount(resource, max(0, left)),
                "borrowed": format_amount(resource, node.borrowed(place)),
            }
        )
    return {"name": node.name, "kind": "ClusterQueue" if node.is_queue else "Cohort", "quota": found}


def _holders(books: CohortBooks, name: str, workload: Workload) -> list[Manifest]:
    """Who holds most of the quota of the tree that the queue is in, of what the workload asks for."""
    node = books.tree.queues.get(name)
    if node is None:
        return []
    tree, asked = node.root, {resource for resource, _ in workload.shape.requests}
    found = []
    for key, admission in books.held.items():
        queue = books.tree.queues.get(admission.cluster_queue)
        if queue is not None and queue.root is tree:
            used: Amounts = {}
            for (_, resource), amount in admission.usage.items():
                if not asked or resource in asked:
                    used[resource] = used.get(resource, 0) + amount
            found.append((-max(used.values(), default=0), f"{key.namespace}/{key.name}", admission.cluster_queue, used))
    shown = sorted(found, key=lambda item: item[:2])[:NAMED]
    return [
        {"workload": who, "queue": queue, "used": {r: format_amount(r, a) for r, a in used.items()}}
        for _, who, queue, used in shown
    ]
