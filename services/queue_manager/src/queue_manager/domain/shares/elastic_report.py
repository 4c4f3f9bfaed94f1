"""What users read in the status of elastic quotas: what their pods use, what they ask for, and what the quota may use now."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from kube import Decision, Event, Key, Manifest, Mutation, Verb
from kube.elastic_quotas import ELASTIC_QUOTA, quota_name
from kube.words import counted
from queue_manager.domain.members.demand import QueueTotals
from queue_manager.domain.quotas.sums import accumulate
from queue_manager.domain.reports import Reports
from queue_manager.domain.shares.tree_shares import TreeShares
from resources import Amounts, format_amounts

NAME = "ElasticQuotaUseReported"
_FIELDS = ("used", "request", "runtime")


class ElasticReport:
    """Writes reports of the quotas whose shares ``shares`` has."""

    def __init__(self, shares: TreeShares) -> None:
        self._shares = shares
        self.reports = Reports[str](NAME, "UseChanged")
        self._written: dict[str, dict[Key, tuple[str, Manifest]]] = {}

    def read(self, event: Event) -> None:
        """Take in what the status of a quota says."""
        name = quota_name(event.key.name)
        known = self._written.setdefault(name, {})
        if event.new is None:
            known.pop(event.key, None)
            return
        kept = {part: event.new.status.get(part) for part in _FIELDS}
        if known.get(event.key) != (event.new.uid, kept):
            known[event.key] = (event.new.uid, kept)
            self.reports.dirty[name] = None

    def touch(self, names: Iterable[str]) -> None:
        """What is used, asked for or shared of these quotas changed; it counts in those above them."""
        for name in names:
            if name in self._shares.tree.queues:
                self.reports.dirty.update(dict.fromkeys(self._shares.tree.line_of(name)))

    def write(
        self, totals: Mapping[str, QueueTotals], now: int, busy: bool, in_flight: AbstractSet[Key]
    ) -> Decision | None:
        """The statuses that changed, as one decision, if this is a time for them; see ``Reports``."""
        return self.reports.write(
            now,
            busy,
            in_flight,
            lambda names: self._mutations(names, totals),
            lambda count: f"the use of {counted(count, 'elastic quota')} changed",
        )

    def _mutations(self, names: Iterable[str], totals: Mapping[str, QueueTotals]) -> list[Mutation]:
        found = []
        for name in names:
            queue = self._shares.tree.queues.get(name)
            key = Key(ELASTIC_QUOTA, queue.namespace, name.partition("/")[2]) if queue is not None else None
            if key is None or key not in self._written.get(name, {}):
                continue
            uid, before = self._written[name][key]
            after = self._status(name, totals)
            patch = {
                part: dict(sorted((dict.fromkeys(before[part] or {}) | after[part]).items()))
                for part in _FIELDS
                if before[part] != after[part]
            }
            if patch:
                found.append(Mutation(Verb.STATUS, key, uid, patch=patch))
        return found

    def _status(self, name: str, totals: Mapping[str, QueueTotals]) -> dict[str, Manifest]:
        used: Amounts = {}
        asked: Amounts = {}
        below = [name]
        for each in below:
            below.extend(self._shares.tree.children_of(each))
            if each in totals:
                accumulate(used, totals[each].allocated, 1)
                accumulate(asked, totals[each].request, 1)
        entry = self._shares.entries.get(name) or {"capability": {}}
        return {
            "used": format_amounts(used),
            "request": format_amounts(asked),
            "runtime": format_amounts(entry["capability"]),
        }
