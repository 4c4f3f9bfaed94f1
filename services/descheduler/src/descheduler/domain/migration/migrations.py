"""All migrations in one look: those that wait are let in by their rank, those that go on take their next step."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from descheduler.domain.cluster.fitting import Fitting
from descheduler.domain.cluster.pod_traits import importance, is_active, node_of
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.migration import job_changes
from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.migration.course import Course
from descheduler.domain.migration.job import Migration
from descheduler.domain.migration.migration_book import MigrationBook
from descheduler.domain.migration.reservation_template import reservation_manifest
from descheduler.domain.policy.migration_args import MigrationArgs
from kube import Decision, Event, Key, Object
from kube.pods import is_finished

JOB = "Job.batch"


@dataclass(slots=True)
class Migrations:
    """``due`` is when something is to be looked at although nothing happens by then."""

    args: MigrationArgs
    book: MigrationBook
    view: ClusterView
    due: int | None = None
    _ends: dict[Key, int] = field(default_factory=dict)

    def fold(self, event: Event) -> None:
        """A job came, changed or went."""
        self.book.fold(event)
        if event.new is None:
            self._ends.pop(event.key, None)
        else:
            job = Migration(event.new)
            self._ends[event.key] = job.cleared_at if job.is_over else job.ends_at

    def decide(self, arbiter: Arbiter, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """One step for each job at most."""
        course = Course(self.args, self.book.store, arbiter, now)
        jobs = [job for job in self.book.unfinished() if job.key not in in_flight and not job.paused]
        made = [course.step(job) for job in jobs if job.begun]
        made += [self._let_in(job, course) for job in self._line(jobs, arbiter)]
        made += [job_changes.cleared(job) for job in self._over(now) if job.key not in in_flight]
        self._note_due(arbiter, now)
        return [decision for decision in made if decision is not None]

    def _let_in(self, job: Migration, course: Course) -> Decision | None:
        arbiter, now = course.arbiter, course.now
        if job.ends_at <= now:
            why = str(job.item.status.get("message") or "its turn did not come")
            return job_changes.failed(job, "Timeout", f"not done within {job.ttl_ms // 1000} s: {why}", now)
        pod = course.pod_of(job)
        if pod is None:
            message = f"pod {job.pod.namespace}/{job.pod.name} is not there"
            return job_changes.failed(job, "MissingPod", message, now)
        ended = is_finished(pod) and not job.direct
        refusal = (
            "it has ended, and nothing has to be reserved" if ended else arbiter.refusal(pod) or self._homeless(pod)
        )
        if refusal:
            message = f"pod {pod.namespace}/{pod.name} is not moved: {refusal}"
            return job_changes.failed(job, "ForbiddenMigratePod", message, now)
        why = "nothing is moved by a migration controller with dryRun" if self.args.dry_run else arbiter.hold(pod)
        if why:
            return job_changes.held(job, why)
        reservation = None if job.direct or job.brings_reservation else reservation_manifest(job, pod, now)
        workload = arbiter.workloads.of(pod)
        arbiter.admit(pod)
        return job_changes.started(job, pod, workload.uid if workload is not None else "", reservation, now)

    def _homeless(self, pod: Object) -> str:
        """That no other node would take the pod, where this is asked for; else empty."""
        if not self.args.node_fit or "NodeFit" in self.args.skipped or is_finished(pod):
            return ""
        fitting = Fitting(self.view)
        others = (node for node in self.view.nodes() if node.name != node_of(pod))
        return "" if any(not fitting.obstacle(pod, node) for node in others) else "no other node would take it"

    def _line(self, jobs: list[Migration], arbiter: Arbiter) -> Iterator[Migration]:
        """Those that wait, the least important pods first, then the newest job; those of one batch Job together.

        Of batch Jobs the one that has most pods on the move comes first, so that one is disturbed and not many.
        """
        waiting = [(job, self.book.store.get(job.pod)) for job in jobs if not job.begun]
        ranked = sorted(waiting, key=lambda one: (_rank(one[1]), _newest_first(one[0].item.created), one[0].name))
        gathered: dict[str, list[Migration]] = {}
        for job, pod in ranked:
            workload = arbiter.workloads.of(pod) if pod is not None else None
            group = workload.uid if workload is not None and workload.kind == JOB else job.item.uid
            gathered.setdefault(group, []).append(job)
        for group in sorted(gathered, key=lambda group: -arbiter.moving_of(group)):
            yield from gathered[group]

    def _over(self, now: int) -> list[Migration]:
        due = [key for key, at in self._ends.items() if at <= now and key not in self.book.open]
        found = (self.book.store.get(key) for key in sorted(due))
        return [Migration(item) for item in found if item is not None]

    def _note_due(self, arbiter: Arbiter, now: int) -> None:
        times = [at for at in self._ends.values() if at > now]
        self.due = min([*times, *([arbiter.wakes_at] if arbiter.wakes_at is not None else [])], default=None)


def _rank(pod: Object | None) -> tuple[int, ...]:
    return importance(pod) if pod is not None and is_active(pod) else ()


def _newest_first(created: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in created)
