"""Which pods were ordered to be evicted, and for what: read from the logs, as an auditor would."""

from bus import MemoryBus
from bus.memory import MemoryLog
from kube import Decision, Store, Verb
from testing.scenarios.promises import Promises
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.codec.facts import outcomes
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2

EVICTING = ("descheduler", "gang_scheduler", "slo_controller")


class Evictions:
    """Follows the logs as far as it was asked."""

    def __init__(self, bus: MemoryBus) -> None:
        self._facts = bus.log(subjects.FACTS)
        self._sources = [bus.log(subjects.decisions(service)) for service in EVICTING]
        self._seen: dict[str, int] = {}
        self._evicting: dict[str, Decision] = {}
        self._ordered: list[tuple[str, str]] = []
        self._promises = Promises()

    def ordered(self) -> list[tuple[str, str]]:
        """Namespace and name of each evicted pod, in the order in which the evictions were ordered."""
        for source in self._sources:
            for payload in self._fresh(source):
                for decision_id, decision in decode_commit(decision_pb2.Commit.FromString(payload)):
                    if any(item.verb is Verb.EVICT for item in decision.mutations):
                        self._evicting[decision_id] = decision
        for payload in self._fresh(self._facts):
            for outcome in outcomes(fact_pb2.ChangeSet.FromString(payload)):
                if outcome.decision_id not in self._evicting:
                    continue
                decision = self._evicting.pop(outcome.decision_id)
                if outcome.applied:
                    self._ordered += [item.key[1:] for item in decision.mutations if item.verb is Verb.EVICT]
                    self._promises.note(decision)
        return list(self._ordered)

    def useless(self, store: Store) -> list[str]:
        """What was promised to those for whom pods were evicted, and not kept when these had left, in words."""
        self.ordered()
        return self._promises.broken(store)

    def _fresh(self, log: MemoryLog) -> list[bytes]:
        entries = log.entries(self._seen.get(log.name, 0))
        if entries:
            self._seen[log.name] = entries[-1].sequence
        return [entry.payload for entry in entries]
