"""What would help somebody who waits: for each reason a sentence that names what to change, and whose it is to change."""

from collections.abc import Callable, Iterator

from gang_scheduler.domain.reasons.explain import LENDS_MORE, Reason
from kube import Manifest
from kube.words import counted

_RESOURCES = (
    Reason.NOT_ENOUGH_RESOURCES,
    Reason.DEVICES_MISSING,
    Reason.QUEUE_CAPABILITY,
    Reason.GUARANTEED_TO_OTHERS,
)


def ways_out(rule: str, answer: Manifest) -> list[str]:
    """The sentences for whoever waits because of ``rule``, the likeliest to help first; ``answer`` has the numbers."""
    fixed = _FIXED.get(rule)
    return [*(fixed(answer) if fixed else ()), *(_by_eviction(answer) if rule in _RESOURCES else ())]


def _room(answer: Manifest) -> Iterator[str]:
    miss, gang = answer.get("nearestMiss") or {}, answer.get("gang") or {}
    lacking = int(gang.get("needed") or 0) - int(gang.get("placed") or 0)
    if lacking > 1:
        yield f"wait, or make room for {lacking} more members, or ask for less in each"
    elif miss.get("missing") and not miss.get("rules"):
        more = " and ".join(f"{amount} {name}" for name, amount in miss["missing"].items())
        yield f"wait, or free {more} on node {miss['node']}, or ask for that much less"
    if miss.get("rules"):
        yield "change what the pod asks of its node (selector, affinity, tolerations, spread), or the nodes"
    if gang.get("placed") and gang.get("needed", 0) > gang["placed"]:
        yield f"a minimum of {counted(gang['placed'], 'member')} could start now; {gang['needed']} are asked for at once"


def _rules(answer: Manifest) -> Iterator[str]:
    yield "change the pod's node selector, affinity, tolerations or spread rules, or label, untaint or uncordon nodes"


def _busy(answer: Manifest) -> Iterator[str]:
    yield "wait until the nodes are less busy, add nodes, or raise the usage threshold (loadAware, or a node's annotation)"


def _devices(answer: Manifest) -> Iterator[str]:
    yield "wait until others give devices back, ask for fewer or other devices in the resource claim, or add devices"


def _domain(answer: Manifest) -> Iterator[str]:
    nearest = answer.get("nearestDomain") or {}
    if nearest.get("places"):
        lacking = counted(nearest["needed"] - nearest["places"], "more member")
        yield f"wait, or make room for {lacking} in domain {nearest['domain']}"
    yield "allow a higher level of the topology, make it preferred instead of required, or ask for fewer or smaller pods"


def _never(answer: Manifest) -> Iterator[str]:
    if LENDS_MORE in str(answer.get("message")):
        yield f"wait {LENDS_MORE}: that follows what online pods use; or ask for less, in smaller pods"
        return
    yield "waiting does not help: ask for less, in smaller pods or fewer at once, or add larger nodes or a larger queue"


def _capability(answer: Manifest) -> Iterator[str]:
    queue = answer.get("blockedBy") or answer.get("queue")
    users = ", ".join(item["group"] for item in answer.get("usedBy") or ())
    yield f"wait until work in queue {queue} ends" + (f" (it holds most: {users})" if users else "")
    yield f"raise the capability of queue {queue}, or use a queue that has room"


def _guaranteed(answer: Manifest) -> Iterator[str]:
    names = ", ".join(item["queue"] for item in answer.get("guaranteedTo") or ()) or "those queues"
    yield f"wait for work outside {names} to end, use a queue that has a guarantee, or lower theirs"


def _members(answer: Manifest) -> Iterator[str]:
    yield "have the missing pods created (their job may be at it still), or lower the minimum of the group or role"


def _closed(answer: Manifest) -> Iterator[str]:
    yield f"open queue {answer.get('queue')} (its administrator can), or move the work to an open one"


def _missing(answer: Manifest) -> Iterator[str]:
    yield f"create queue {answer.get('queue')}, or name one that exists"


def _head(answer: Manifest) -> Iterator[str]:
    ahead = (answer.get("ahead") or ["the head"])[0]
    yield f"wait for {ahead}, take it out of the queue, or give this a higher priority: nobody passes the head here"


def _group(answer: Manifest) -> Iterator[str]:
    yield "create the PodGroup that the pods name in their annotation scheduling.k8s.io/group-name"


def _bundle(answer: Manifest) -> Iterator[str]:
    yield "create the missing gang of the bundle, or have its queue let it in: a bundle starts whole"


def _freed(answer: Manifest) -> Iterator[str]:
    yield "nothing has to be done: the room is kept, and is taken when those who leave it are gone"


def _quota(answer: Manifest) -> Iterator[str]:
    yield "wait until work under that quota ends, ask for less, or have the quota raised"


def _gates(answer: Manifest) -> Iterator[str]:
    yield "whoever set the scheduling gates has to remove them"


def _requests(answer: Manifest) -> Iterator[str]:
    yield "correct the requests of the pod's containers"


def _class(answer: Manifest) -> Iterator[str]:
    yield "create the RuntimeClass, or make a pod that names one that exists and asks for nothing else than it does"


def _paused(answer: Manifest) -> Iterator[str]:
    yield "wait until whoever paused it lets go: `tidegate resume scheduling`"


def _not_ready(answer: Manifest) -> Iterator[str]:
    yield "see `tidegate status`: queue_manager has to say first what the queues are"


def _by_eviction(answer: Manifest) -> Iterator[str]:
    names, least = answer.get("evictable") or (), answer.get("priorityNeeded")
    if names and least is not None and int(answer.get("priority") or 0) < least:
        who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        off = "; preemption is off here" if answer.get("preemption") == "off" else ""
        yield f"with a priority of {least} or more (it has {answer.get('priority', 0)}) it could take the room of {who}{off}"


_FIXED: dict[str, Callable[[Manifest], Iterator[str]]] = {
    Reason.NODES_TOO_BUSY: _busy,
    Reason.DEVICES_MISSING: _devices,
    Reason.NOT_ENOUGH_RESOURCES: _room,
    Reason.NO_NODE_MATCHES: _rules,
    Reason.NEVER_FITS: _never,
    Reason.NO_DOMAIN: _domain,
    Reason.NOT_ENOUGH_PODS: _members,
    Reason.NOT_ENOUGH_OF_ROLE: _members,
    Reason.QUEUE_CAPABILITY: _capability,
    Reason.QUEUE_CLOSED: _closed,
    Reason.WAITING_FOR_QUOTA: _quota,
    Reason.QUEUE_MISSING: _missing,
    Reason.GUARANTEED_TO_OTHERS: _guaranteed,
    Reason.BEHIND_HEAD: _head,
    Reason.GROUP_MISSING: _group,
    Reason.BUNDLE_INCOMPLETE: _bundle,
    Reason.ROOM_BEING_FREED: _freed,
    Reason.BAD_REQUESTS: _requests,
    Reason.RUNTIME_CLASS: _class,
    Reason.PAUSED: _paused,
    "SchedulingGates": _gates,
    "VolumesNotReady": lambda answer: iter(
        ["create the claim, or see with `tidegate describe pvc` why it is not bound"]
    ),
    "NotReady": _not_ready,
    "QueueNotLeaf": lambda answer: iter(["name one of the queues below it"]),
    "QuotaExceeded": _quota,
    "ClusterFull": lambda answer: iter(["wait until work ends: the gate lets in no more than the cluster can hold"]),
}
