"""What users read in a queue's status: what it has, and how many of its groups are in which phase.

A report is for people, so it may be a moment old: see ``reports``.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from kube import Decision, Key, Manifest, Mutation, Verb
from kube.words import counted
from queue_manager.domain.members.demand import QueueTotals
from queue_manager.domain.quotas.queue_tree import QueueTree, queue_key
from queue_manager.domain.quotas.sums import accumulate
from queue_manager.domain.reports import Reports
from queue_manager.domain.shares.past_use import PastUse, past_use_part, read_past_use
from resources import Amounts, QuantityError, format_amounts, parse_amounts

NAME = "QueueUseReported"


_PHASES = ("pending", "inqueue", "running", "unknown", "completed")


class QueueReport:
    """Which queues' reports are old, and when they may be written."""

    def __init__(self, half_life_ms: int = 0) -> None:
        self.past: dict[str, PastUse] = {}
        """What queues have used lately, as their status says; empty where past use does not count."""
        self._half_life_ms = half_life_ms
        self._written: dict[str, Manifest] = {}
        self.reports = Reports[str](NAME, "UseChanged")

    def read(self, name: str, status: Manifest | None) -> None:
        """Take in what the status of ``name`` says; None when the queue is gone."""
        if status is None:
            self._written.pop(name, None)
            self.past.pop(name, None)
            return
        if self._half_life_ms and "pastUse" in status:
            self.past[name] = read_past_use(status["pastUse"], _parsed(status.get("allocated") or {}))
        kept = {field: status[field] for field in ("allocated", *_PHASES) if field in status}
        if self._written.get(name) != kept:
            self._written[name] = kept
            self.reports.dirty[name] = None

    def touch(self, tree: QueueTree, queues: Iterable[str]) -> None:
        """The totals of ``queues`` changed, and so those of all that are above them."""
        for name in queues:
            self.reports.dirty.update(dict.fromkeys(tree.line_of(name)))

    def write(
        self, tree: QueueTree, totals: Mapping[str, QueueTotals], now: int, busy: bool, in_flight: AbstractSet[Key]
    ) -> Decision | None:
        """The reports that changed, as one decision, if this is a time for them; see ``Reports``."""
        return self.reports.write(
            now,
            busy,
            in_flight,
            lambda names: [found for name in names if (found := self._mutation(tree, totals, name, now))],
            lambda count: f"the use of {counted(count, 'queue')} changed",
        )

    def _mutation(self, tree: QueueTree, totals: Mapping[str, QueueTotals], name: str, now: int) -> Mutation | None:
        queue = tree.queues.get(name)
        written = self._written.get(name)
        if queue is None or not queue.uid or written is None:
            return None
        allocated, phases = _summed(tree, totals, name)
        patch: Manifest = {}
        before: Manifest = written.get("allocated") or {}
        after = format_amounts(allocated)
        if before != after:
            # By name: what came first is no news.
            patch["allocated"] = dict(sorted((dict.fromkeys(before) | after).items()))
            if self._half_life_ms:
                known = self.past.get(name, PastUse(used=_parsed(before)))
                patch["pastUse"] = past_use_part(known, now, self._half_life_ms)
        counts = {phase: phases.get(phase.capitalize(), 0) for phase in _PHASES}
        patch |= {phase: count for phase, count in counts.items() if written.get(phase, 0) != count}
        return Mutation(Verb.STATUS, queue_key(name), queue.uid, patch=patch) if patch else None


def _parsed(amounts: Manifest) -> Amounts:
    try:
        return parse_amounts(amounts)
    except QuantityError:
        return {}


def _summed(tree: QueueTree, totals: Mapping[str, QueueTotals], name: str) -> tuple[Amounts, dict[str, int]]:
    """What the queue and all below it have, and their groups by phase."""
    allocated: Amounts = {}
    phases: dict[str, int] = {}
    below = [name]
    for each in below:
        below.extend(tree.children_of(each))
        if each in totals:
            accumulate(allocated, totals[each].allocated, 1)
            accumulate(phases, totals[each].phases, 1)
    return allocated, phases
