"""What users read in the status of ClusterQueues, LocalQueues and Cohorts: use, loans, how many wait and how many have quota."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from kube import Decision, Event, Key, Manifest, Mutation, Verb, rfc3339
from kube.words import counted
from queue_manager.domain.admitting.local_use import LocalUse
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import PER_MILLE, UNLIMITED, Node
from queue_manager.domain.cohorts.quota_holding import Holding
from queue_manager.domain.quotas.cluster_queue import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE_KIND,
    NONE,
    ClusterQueue,
    LocalQueue,
    Quotas,
)
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from queue_manager.domain.reports import Reports
from resources.amounts import format_amount

NAME = "QuotaUseReported"
_MOST = (1 << 63) - 1
_ACTIVE = ("True", "Ready", "can admit new workloads")


class CohortReport:
    """Which statuses are old. ``fair`` reports shares, too."""

    def __init__(self, books: CohortBooks, fair: bool, policy: KueuePolicy | None = None) -> None:
        self.use = LocalUse(books, policy or KueuePolicy(), self._local_before)
        self._books = books
        self._fair = fair
        self._written: dict[Key, tuple[str, Manifest]] = {}
        self.reports = Reports(NAME, "UseChanged", books.shown)

    def read(self, event: Event) -> None:
        """Take in what the status of one of the objects says."""
        new = event.new
        if new is None:
            self._written.pop(event.key, None)
        else:
            self._written[event.key] = (new.uid, new.status)

    def write(self, now: int, busy: bool, in_flight: AbstractSet[Key]) -> Decision | None:
        """The statuses that changed, as one decision, if this is a time for them; see ``Reports``."""
        return self.reports.write(
            now,
            busy,
            in_flight,
            lambda names: list(self._mutations(names, now)),
            lambda count: f"the use of {counted(count, 'queue or cohort', 'queues and cohorts')} changed",
        )

    def _mutations(self, names: Iterable[str], now: int) -> Iterator[Mutation]:
        books = self._books
        above: dict[str, Node] = {}
        shown = set(names)
        for name in names:
            queue, node = books.queues.get(name), books.tree.queues.get(name)
            if queue is None or node is None:
                continue
            yield from self._patch(Key(CLUSTER_QUEUE, "", name), self._queue_status(queue, node), now)
            above |= {upper.name: upper for upper in list(node.path())[1:]}
        for (namespace, name), local in sorted(books.local.items()):
            if local.cluster_queue in shown:
                yield from self._patch(Key(LOCAL_QUEUE_KIND, namespace, name), self._local_status(local, now), now)
        for name, node in sorted(above.items() if self._fair else ()):
            yield from self._patch(Key(COHORT, "", name), {"fairSharing": {"weightedShare": _told(node)}}, now)

    def _patch(self, key: Key, wanted: Manifest, now: int) -> Iterator[Mutation]:
        """The change of a status after which it says what is wanted; nothing where it does."""
        if key not in self._written:
            return
        uid, status = self._written[key]
        patch = {name: value for name, value in wanted.items() if name != "active" and status.get(name) != value}
        if "active" in wanted:
            patch |= _active(status, wanted["active"], now)
        if patch:
            yield Mutation(Verb.STATUS, key, uid, patch=patch)

    def _queue_status(self, queue: ClusterQueue, node: Node) -> Manifest:
        books = self._books
        holding = books.holdings.get(queue.name, Holding())
        line = books.lines[queue.name]
        waiting = len(line.members) + books.stray_in.get(queue.name, 0)
        status = _counts(waiting, holding, self._admitted(holding, queue), queue)
        for used in (status["flavorsReservation"], status["flavorsUsage"]):
            for flavor in used:
                for item in flavor["resources"]:
                    borrowed = node.borrowed((flavor["name"], item["name"]))
                    item["borrowed"] = format_amount(item["name"], borrowed)
        status["active"] = self._state(queue)
        if self._fair:
            status["fairSharing"] = {"weightedShare": _told(node)}
        return status

    def _admitted(self, holding: Holding, queue: ClusterQueue | None) -> Holding:
        """What those hold whose admission checks have agreed."""
        books = self._books
        if queue is None or not queue.checks:
            return holding
        found = Holding()
        for key in holding.keys:
            if books.workloads[key].let_in:
                found.add(key, books.held[key].usage, 1)
        return found

    def _state(self, queue: ClusterQueue) -> tuple[str, str, str]:
        """Whether the queue can admit anything, why not, and a sentence, as in the condition Active."""
        books = self._books
        missing = [name for group in queue.quota.groups for name in group.flavors if name not in books.flavors]
        if missing:
            return "False", "FlavorNotFound", f"flavors {', '.join(missing)} do not exist"
        unanswered = books.unanswered(queue)
        if unanswered is not None:
            return "False", *unanswered
        if queue.stop != NONE:
            return "False", "Stopped", "the ClusterQueue is stopped"
        return _ACTIVE

    def _local_before(self, place: tuple[str, str]) -> Manifest:
        known = self._written.get(Key(LOCAL_QUEUE_KIND, *place))
        return known[1] if known is not None else {}

    def _local_status(self, local: LocalQueue, now: int) -> Manifest:
        books, place = self._books, (local.namespace, local.name)
        queue = books.queues.get(local.cluster_queue)
        holding = books.local_holdings.get(place, Holding())
        status = _counts(books.local_waiting.get(place, 0), holding, self._admitted(holding, queue), queue)
        if queue is None:
            text = f"ClusterQueue {local.cluster_queue} does not exist"
            status["active"] = ("False", "ClusterQueueDoesNotExist", text)
        elif local.stop != NONE:
            status["active"] = ("False", "Stopped", "the LocalQueue is stopped")
        elif self._state(queue) != _ACTIVE:
            text = f"ClusterQueue {queue.name} admits nothing: {self._state(queue)[2]}"
            status["active"] = ("False", "ClusterQueueIsInactive", text)
        past = self.use.news(place, now)
        return status | ({"fairSharing": past} if past else {})


def _counts(waiting: int, holding: Holding, admitted: Holding, queue: ClusterQueue | None) -> Manifest:
    """``holding`` is what workloads hold, ``admitted`` what those of them hold that may start."""
    return {
        "pendingWorkloads": waiting,
        "reservingWorkloads": holding.count,
        "admittedWorkloads": admitted.count,
        "flavorsReservation": _used(queue, holding.usage) if queue is not None else [],
        "flavorsUsage": _used(queue, admitted.usage) if queue is not None else [],
        "active": _ACTIVE,
    }


def _used(queue: ClusterQueue, usage: Quotas) -> list[Manifest]:
    """What is used of every flavor, in the order of the ClusterQueue."""
    found: list[Manifest] = []
    for group in queue.quota.groups:
        for flavor in group.flavors:
            items = [
                {"name": name, "total": format_amount(name, usage.get((flavor, name), 0))} for name in group.resources
            ]
            found.append({"name": flavor, "resources": items})
    return found


def _active(status: Manifest, wanted: tuple[str, str, str], now: int) -> Manifest:
    value, reason, message = wanted
    made = {"type": "Active", "status": value, "reason": reason, "message": message}
    since = rfc3339(now)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Active" and condition.get("status") == value:
            since = condition.get("lastTransitionTime") or since
            if condition == made | {"lastTransitionTime": since}:
                return {}
    return {"conditions": [made | {"lastTransitionTime": since}]}


def _told(node: Node) -> int:
    """The share as users read it: thousandths, rounded up."""
    share = node.share()
    return _MOST if share >= UNLIMITED else -(-share // PER_MILLE)
