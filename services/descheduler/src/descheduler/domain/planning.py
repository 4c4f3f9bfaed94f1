"""One round: every strategy that is on adds its moves to one plan, so that none spends what another has taken."""

from collections.abc import Iterator
from dataclasses import dataclass

from descheduler.domain.cluster.pod_traits import DELETION_COST, node_of
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.load.anomaly import AnomalyRecords
from descheduler.domain.load.low_node_load import NAME as LOW_NODE_LOAD
from descheduler.domain.load.low_node_load import LowNodeLoad
from descheduler.domain.load.node_loads import NodeLoads
from descheduler.domain.load.pools import PoolNodes
from descheduler.domain.migration import job_changes
from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.migration.migration_book import MigrationBook
from descheduler.domain.migration.successors import successors
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.migration_args import EVICT_DIRECTLY
from descheduler.domain.policy.policy import DeschedulerPolicy
from descheduler.domain.strategies.preemption import make_room
from descheduler.domain.strategies.registry import STRATEGIES
from descheduler.domain.strategies.scale_down import NAME as SCALE_DOWN
from kube import Decision
from kube.pods import is_finished

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Planning:
    """Makes plans from the facts, and decisions from plans."""

    policy: DeschedulerPolicy
    view: ClusterView
    book: MigrationBook

    def plan(
        self, records: AnomalyRecords, arbiter: Arbiter, now: int, *, rehearsal: bool
    ) -> tuple[Plan, list[PoolNodes]]:
        """What should move now, and how hot the nodes are then. ``records`` take this round, unless it is a rehearsal."""
        plan, loads = self._begun(arbiter, now)
        make_room(plan, self.book)
        for name, args in self.policy.strategies.items():
            STRATEGIES[name](args, plan)
        if not self.policy.load.paused:
            LowNodeLoad(self.policy.load, loads, plan, records, rehearsal).run()
        return plan, loads.pools

    def pools(self, now: int) -> list[PoolNodes]:
        """How hot the nodes are, with all that is on the move where it goes."""
        return self._begun(Arbiter(self.policy.migration, self.view.store, self.book.serving, now), now)[1].pools

    def _begun(self, arbiter: Arbiter, now: int) -> tuple[Plan, NodeLoads]:
        """A plan of nothing but what goes on already, and what nodes use then."""
        loads = NodeLoads(self.view, self.policy.load, now, successors(self.book))
        moving, resting = self.book.moving(), self.book.resting(now)
        return Plan(self.view, self.policy, arbiter, moving, now, loads, resting), loads

    def decisions(self, plan: Plan) -> Iterator[Decision]:
        """A job for each move; none for those of a strategy that only plans."""
        args, rehearsed = self.policy.migration, self._rehearsed()
        if self.policy.only_plans:
            return
        for move in plan.moves:
            if move.strategy in rehearsed:
                continue
            mode = EVICT_DIRECTLY if is_finished(move.pod) else args.mode
            yield job_changes.proposed(move, _sentence(move), self._name(move, plan.now), mode, args.ttl_ms)

        if SCALE_DOWN not in rehearsed:
            for key, cost in sorted(plan.costs.items()):
                pod = self.view.store.get(key)
                if pod is not None and pod.annotations.get(DELETION_COST) != str(cost):
                    yield job_changes.valued(pod, cost)

    def _rehearsed(self) -> set[str]:
        """The strategies that only plan."""
        found = {name for name, args in self.policy.strategies.items() if args.truth("dryRun")}
        return found | ({LOW_NODE_LOAD} if self.policy.load.dry_run else set())

    def _name(self, move: Move, now: int) -> str:
        """Of the pod and the round: the same facts give the same name, and a later try another one."""
        pod, number = move.pod, now // self.policy.interval_ms
        return f"{pod.namespace}-{pod.name}"[:_LONGEST_NAME] + f"-{pod.uid[-6:]}-{number:x}"


def _sentence(move: Move) -> str:
    where = f" to {move.target}" if move.target else ""
    return f"pod {move.pod.namespace}/{move.pod.name} should move from {node_of(move.pod)}{where}: {move.message}"
