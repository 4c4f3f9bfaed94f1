"""Which migrations may go on now: limits for nodes, namespaces and workloads, and disruption budgets.

Koordinator's arbitrator. Migrations that go on are counted, and those that are let in are at once, so that the same rules hold
for the next one in line, and for a plan that is only thought of.
"""

from collections import Counter
from dataclasses import dataclass, field

from descheduler.domain.cluster.budgets import Budgets, ServingPods
from descheduler.domain.cluster.gangs import Gangs
from descheduler.domain.cluster.pod_traits import POD, moment, node_of
from descheduler.domain.cluster.workloads import Workload, Workloads, serves
from descheduler.domain.migration.job import MIGRATION, Migration
from descheduler.domain.migration.limits import most_migrating, most_unavailable, next_turn
from descheduler.domain.migration.migration_book import MigrationBook
from descheduler.domain.migration.protection import Protection
from descheduler.domain.policy.migration_args import MigrationArgs, ObjectLimiter
from kube import Decision, Key, Object, Store, Verb, rfc3339
from kube.pods import is_finished
from kube.words import counted, verb


@dataclass(slots=True)
class Arbiter:
    """Rules as of one moment; a new one is made for each decision, from the facts alone.

    ``wakes_at`` is when the next of those whose turn has not come may go, None where nobody waits for the time.
    """

    args: MigrationArgs
    store: Store
    serving: ServingPods
    now: int
    workloads: Workloads = field(init=False)
    budgets: Budgets = field(init=False)
    protection: Protection = field(init=False)
    wakes_at: int | None = None
    _on_node: Counter[str] = field(default_factory=Counter)
    _in_namespace: Counter[str] = field(default_factory=Counter)
    _of_workload: dict[str, dict[Key, None]] = field(default_factory=dict)
    _pods: dict[Key, None] = field(default_factory=dict)
    _times: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _evictions: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workloads = Workloads(self.store)
        self.budgets = Budgets(self.store, self.serving)
        self.protection = Protection(self.args, self.workloads, Gangs(self.store))

    @classmethod
    def of(cls, args: MigrationArgs, book: MigrationBook, now: int) -> "Arbiter":
        """With all that goes on, and all that was evicted lately."""
        made = cls(args, book.store, book.serving, now)
        for job in book.all():
            at = job.evicted_at
            if job.begun:
                made._count(job.pod, job.left_node, job.workload)
                at = job.began_at if at is None else at
            if job.evicted_at is not None:
                made._evictions.append(job.evicted_at)
            if at is not None:
                made._went(job, at)
        for decision in book.assumed.values():
            made._assume(decision)
        return made

    def fork(self) -> "Arbiter":
        """Another one that has counted the same."""
        made = Arbiter(self.args, self.store, self.serving, self.now)
        made.budgets.spent.update(self.budgets.spent)
        made._on_node, made._in_namespace = self._on_node.copy(), self._in_namespace.copy()
        made._of_workload = {uid: dict(pods) for uid, pods in self._of_workload.items()}
        made._pods, made._times = dict(self._pods), {name: list(times) for name, times in self._times.items()}
        return made

    def refusal(self, pod: Object) -> str:
        """Why the pod may never be moved; empty when it may."""
        return self.protection.refusal(pod)

    def hold(self, pod: Object) -> str:
        """Why the pod may not be moved now, though later perhaps; empty when it may."""
        if pod.key in self._pods:
            return "it is on the move already"
        if self._is_young(pod):
            return f"it is younger than {self.args.min_age_ms // 1000} s"
        return self._by_numbers(pod) or ("" if is_finished(pod) else self.hold_eviction(pod)) or self._by_time(pod)

    def hold_eviction(self, pod: Object) -> str:
        """What forbids just now that the pod goes, reservation or not: too few others serve."""
        workload = self.workloads.of(pod)
        if workload is not None and "MaxUnavailablePerWorkload" not in self.args.skipped:
            replicas = self.workloads.expected(workload)
            most = most_unavailable(self.args, replicas)
            moving = self._of_workload.get(workload.uid, {}).keys() | self.budgets.spent.keys()
            left = sum(
                serves(one) and one.key != pod.key and one.key not in moving for one in self.workloads.pods(workload)
            )
            if replicas - left > most:
                return (
                    f"{left} other pods of {workload} are available, and {replicas - most} of {replicas} have to be: "
                    f"at most {most} may be unavailable"
                )
        return self.budgets.obstacle(pod)

    def evict(self, pod: Object) -> bool:
        """Take the turn of an eviction; False where evictions go too fast, and the time of the next is noted."""
        rate = self.args.evictions
        at = next_turn(rate, 1, self._evictions) if rate is not None else 0
        if at > self.now:
            self._wake(at)
            return False
        self._evictions.append(self.now)
        self.budgets.spent[pod.key] = None
        return True

    def moving_of(self, workload: str) -> int:
        """How many pods of a workload are on the move."""
        return len(self._of_workload.get(workload, ()))

    def admit(self, pod: Object) -> None:
        """The pod will move: count it from now on."""
        workload = self.workloads.of(pod)
        self._count(pod.key, node_of(pod), workload.uid if workload is not None else "")
        self.budgets.spent[pod.key] = None
        for kind, name in self._limited(pod, workload):
            self._times.setdefault((kind, name), []).append(self.now)

    def _count(self, pod: Key, node: str, workload: str) -> None:
        self._pods[pod] = None
        self._on_node[node] += 1
        self._in_namespace[pod.namespace] += 1
        self._of_workload.setdefault(workload, {})[pod] = None

    def _assume(self, decision: Decision) -> None:
        """What was decided already, and is not told by the facts yet."""
        for mutation in decision.mutations:
            if mutation.key.kind == POD:
                self.budgets.spent[mutation.key] = None
            elif mutation.key.kind == MIGRATION and mutation.verb is Verb.PATCH:
                item = self.store.get(mutation.key)
                pod = self.store.get(Migration(item).pod) if item is not None else None
                if pod is not None:
                    self.admit(pod)

    def _went(self, job: Migration, at: int) -> None:
        self._times.setdefault(("workload", job.workload), []).append(at)
        self._times.setdefault(("namespace", job.pod.namespace), []).append(at)

    def _by_numbers(self, pod: Object) -> str:
        workload, args = self.workloads.of(pod), self.args
        node, namespace = node_of(pod), pod.namespace
        limits = [
            ("MaxMigratingGlobally", len(self._pods), args.globally, "in the cluster"),
            (
                "MaxMigratingPerNamespace",
                self._in_namespace[namespace],
                args.per_namespace,
                f"of namespace {namespace}",
            ),
            ("MaxMigratingPerNode", self._on_node[node], args.per_node, f"of node {node}"),
        ]
        if workload is not None and not is_finished(pod):
            most = most_migrating(args, self.workloads.expected(workload))
            moving = len(self._of_workload.get(workload.uid, ()))
            limits.append(("MaxMigratingPerWorkload", moving, most, f"of {workload}"))
        for gate, count, limit, where in limits:
            if limit is not None and count >= limit and gate not in args.skipped:
                return f"{counted(count, 'pod')} {where} {verb(count)} on the move, and at most {limit} may be"
        return ""

    def _by_time(self, pod: Object) -> str:
        workload = self.workloads.of(pod)
        for (kind, name), limiter in self._limited(pod, workload).items():
            replicas = self.workloads.expected(workload) if workload is not None else 1
            most = most_migrating(self.args, replicas) if kind == "workload" else 1
            at = next_turn(limiter, most, self._times.get((kind, name), ()))
            if at > self.now:
                self._wake(at)
                return f"the next pod of this {kind} may move at {rfc3339(at)}"
        return ""

    def _is_young(self, pod: Object) -> bool:
        grown = moment(pod.created) + self.args.min_age_ms
        if grown <= self.now:
            return False
        self._wake(grown)
        return True

    def _wake(self, at: int) -> None:
        self.wakes_at = at if self.wakes_at is None else min(at, self.wakes_at)

    def _limited(self, pod: Object, workload: Workload | None) -> dict[tuple[str, str], ObjectLimiter]:
        found: dict[tuple[str, str], ObjectLimiter] = {}
        if self.args.workload_limiter is not None and workload is not None:
            found["workload", workload.uid] = self.args.workload_limiter
        if self.args.namespace_limiter is not None:
            found["namespace", pod.namespace] = self.args.namespace_limiter
        return found
