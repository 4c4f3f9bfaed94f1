"""All migrations: those that wait, those that go on, and those that are over, kept for people and for the limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from descheduler.domain.cluster.budgets import ServingPods
from descheduler.domain.migration.job import FAILED, MIGRATION, REST_MS, SCHEDULED, SUCCEEDED, Migration
from kube import Decision, Event, Key, Store, Verb, from_manifest


class Rest(NamedTuple):
    """Until when a pod is left alone, and why."""

    until: int
    why: str


@dataclass(slots=True)
class MigrationBook:
    """``open`` are the keys of jobs that are not over. ``assumed`` are decisions of which the facts do not tell yet."""

    store: Store = field(default_factory=Store)
    open: dict[Key, None] = field(default_factory=dict)
    assumed: dict[str, Decision] = field(default_factory=dict)
    serving: ServingPods = field(default_factory=ServingPods)

    def fold(self, event: Event) -> None:
        """A job came, changed or went."""
        if event.new is not None and not event.new.deleting and not Migration(event.new).is_over:
            self.open[event.key] = None
        else:
            self.open.pop(event.key, None)

    def all(self) -> list[Migration]:
        """Every job, by name."""
        return sorted((Migration(item) for item in self.store.of_kind(MIGRATION).values()), key=lambda job: job.name)

    def unfinished(self) -> list[Migration]:
        """Those that are not over, by name."""
        found = (self.store.get(key) for key in sorted(self.open))
        return [Migration(item) for item in found if item is not None]

    def moving(self) -> dict[Key, str]:
        """Pods for which a job is there, or is being made; each with the node that it goes to, empty where that is open."""
        found = dict(self._proposed())
        for job in self.unfinished():
            if (job.pod not in found and not job.dormant) or job.begun:
                found[job.pod] = self.destination(job)
        return found

    def resting(self, now: int) -> dict[str, Rest]:
        """Pods, by uid, that plans leave alone: a move of theirs came to nothing, or they came by one, or one is paused."""
        found = {}
        for job in self.all():
            pod = self.store.get(job.pod) if job.dormant else None
            if pod is not None:
                found[pod.uid] = Rest(job.ends_at, f"migration {job.name} of it is paused")
            if job.strategy and job.phase == FAILED and job.pod_uid and now < job.ended_at + REST_MS:
                found[job.pod_uid] = Rest(job.ended_at + REST_MS, "a move of it came to nothing")
            elif job.strategy and job.phase == SUCCEEDED and job.successor_uid and now < job.cleared_at:
                found[job.successor_uid] = Rest(job.cleared_at, f"it came from {job.left_node} by a move")
        return found

    def lacking_room(self) -> list[Migration]:
        """Those whose reservation has found no room, and out of whose way others may be moved; by name."""
        jobs = (job for job in self.unfinished() if job.begun and job.may_displace and job.evicted_at is None)
        return [job for job in jobs if job.condition(SCHEDULED).get("status") == "False"]

    def destination(self, job: Migration) -> str:
        """The node on which its reservation stands, else the one that was planned; empty where that is open."""
        item = self.store.get(job.reservation) if not job.direct else None
        stands = str(item.status.get("nodeName") or "") if item is not None else ""
        return stands or job.target

    def _proposed(self) -> Iterator[tuple[Key, str]]:
        for decision in self.assumed.values():
            for mutation in decision.mutations:
                if mutation.verb is Verb.CREATE and mutation.key.kind == MIGRATION and mutation.manifest:
                    job = Migration(from_manifest(mutation.manifest))
                    yield job.pod, job.target

    def check(self) -> list[str]:
        """Whether the index says what the facts say."""
        told = {job.key for job in self.all() if not job.is_over and not job.item.deleting}
        strangers = [f"{key} is open in the index or in the facts only" for key in sorted(told ^ self.open.keys())]
        return strangers + self.serving.check()
