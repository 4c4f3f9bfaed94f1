"""Workload objects for all work in LocalQueues: made when the work is there, brought up to date as it goes on."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from kube import Decision, Key, Mutation, Object, Verb
from kube.words import counted
from queue_manager.domain.admitting.workload_sources import WorkloadSources
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.reports import Reports
from queue_manager.domain.workloads.account import WORKLOAD
from queue_manager.domain.workloads.job_workload import JOB, is_own
from queue_manager.domain.workloads.workload_view import Facts, Part, owner_of, status_patch, view_manifest

NAME = "WorkloadsShown"
_MOST = 2000
"""So many changes go into one decision."""


class WorkloadReport:
    """Which Workload objects are old."""

    def __init__(self, books: CohortBooks, sources: WorkloadSources) -> None:
        self._books = books
        self._sources = sources
        self.reports = Reports(NAME, "WorkloadsChanged", sources.unshown)

    def write(self, now: int, busy: bool, in_flight: AbstractSet[Key]) -> Decision | None:
        """The Workloads that changed, as one decision, if this is a time for them; see ``Reports``."""
        return self.reports.write(
            now,
            busy,
            in_flight,
            lambda keys: self._some(keys, now),
            lambda count: f"{counted(count, 'workload')} changed",
        )

    def _some(self, keys: Iterable[Key], now: int) -> list[Mutation]:
        """As many changes as fit into one decision; the others wait for the next one."""
        found: list[Mutation] = []
        for key in keys:
            if len(found) >= _MOST:
                self._sources.unshown[key] = None
                continue
            found.extend(self._mutations(key, now))
        return found

    def _mutations(self, key: Key, now: int) -> Iterator[Mutation]:
        item, shown = self._sources.items.get(key), self._sources.accounts.objects.get(key)
        workload = self._books.workloads.get(key)
        if item is None or workload is None:
            if shown is not None and not is_own(key):
                yield Mutation(Verb.DELETE, shown.key, shown.uid)
            return
        facts = self._facts(key, item)
        if shown is not None:
            patch = status_patch(facts, shown.status, now)
            if patch:
                yield Mutation(Verb.STATUS, shown.key, shown.uid, patch=patch)
        elif not workload.over:
            manifest = view_manifest(facts, *owner_of(item))
            manifest["status"] = status_patch(facts, {}, now)
            name = str(manifest["metadata"]["name"])
            yield Mutation(Verb.CREATE, Key(WORKLOAD, key.namespace, name), manifest=manifest)

    def _facts(self, key: Key, item: Object) -> Facts:
        books = self._books
        workload = books.workloads[key]
        admission = workload.admission
        queue = books.queues.get(admission.cluster_queue) if admission is not None else None
        checks = queue.checks_of(f for f, _ in admission.usage) if queue is not None and admission is not None else []
        return Facts(workload, item, admission, self._parts(key, item), self._sources.readiness.of(key), checks)

    def _parts(self, key: Key, item: Object) -> list[Part]:
        count = self._books.workloads[key].size
        if key.kind == "Pod":
            return [("main", 1, 1, item.spec)]
        if key.kind == JOB:
            sets = self._books.workloads[key].shape.sets
            return [("main", count, sets[0].least, (item.spec.get("template") or {}).get("spec") or {})]
        if is_own(key):
            return [(part.name, part.size, part.least, {}) for part in self._books.workloads[key].shape.sets]
        known = self._sources.templates.parts_of(item.controller)
        return [(name, number, number, spec) for name, number, spec in known] or [("main", count, count, {})]
