"""What the levels do not tell about a Volcano Job: that a pod was evicted, that a spec changed, since when a pod failed.

An edge belongs to the run of the job in which it was seen: the job's version and number of retries. Every action of a
policy begins a new run, so edges that were dealt with are dropped by the fact of their own effect, also when the log
is read again after a crash. What the controller itself deletes begins a new run, too, in the same change set, and the
pods of a change set are told before their job: so it is never taken for an eviction. What was decided while the process
lives is known more exactly: edges that came after the decision was made stay.
"""

from dataclasses import dataclass, field, replace

from job_controller.domain.volcano.census import Member, member_of
from job_controller.domain.volcano.spec import JobSpec
from kube import Event, Object

Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """Something that happened once, at ``at`` milliseconds; ``member`` where it happened to a pod."""

    event: str
    at: int
    run: Run
    member: Member | None = None


@dataclass(frozen=True, slots=True)
class Dealt:
    """What the last decision dealt with: those edges, and the pods that it deletes, by uid."""

    edges: tuple[Edge, ...]
    killed: frozenset[str]


@dataclass(slots=True)
class Memory:
    """The edges of one job that were not dealt with yet, and since when its levels have held, in milliseconds."""

    run: Run = (0, 0)
    edges: list[Edge] = field(default_factory=list)
    since: dict[tuple[str, str], int] = field(default_factory=dict)
    dealt: Dealt | None = None

    def begin(self, run: Run) -> None:
        """The job is in ``run`` now: what happened in another is over."""
        if run != self.run:
            self.edges = self._carried(run)
            self.run = run
            self.since.clear()

    def _carried(self, run: Run) -> list[Edge]:
        """The edges that are still to be dealt with in ``run``: those that came too late for the decision that began it."""
        if run[0] != self.run[0] or self.dealt is None:
            return [edge for edge in self.edges if edge.run == run]
        return [replace(edge, run=run) for edge in self.edges if edge not in self.dealt.edges]

    def held_since(self, event: str, what: str, now: int) -> int:
        """Since when the level ``event`` of ``what`` has held, as far as was seen."""
        return self.since.setdefault((event, what), now)

    def settle_levels(self, holding: set[tuple[str, str]]) -> None:
        """Forget since when the levels held that do not hold any more."""
        for level in [level for level in self.since if level not in holding]:
            del self.since[level]

    def see_pod(self, job: Object, spec: JobSpec, event: Event, now: int) -> None:
        """A pod of the job changed: note that it failed, or that somebody took it away."""
        member = member_of(event.object)
        if member is None:
            return
        if event.new is not None and member.phase == "Failed":
            self.since.setdefault(("PodFailed", event.new.uid), now)
        if _taken_away(event) and self._was_wanted(job, spec, member, event):
            self.edges.append(Edge("PodEvicted", now, self._run_at(job, event), member))

    def see_group(self, job: Object, event: Event, now: int) -> None:
        """The PodGroup changed: note that it became Unknown."""
        if event.new is not None and _phase(event.new) == "Unknown" and _phase(event.old) != "Unknown":
            self.edges.append(Edge("Unknown", now, self._run_at(job, event)))

    def see_job(self, event: Event, now: int) -> None:
        """The job itself changed: its run, or its spec."""
        assert event.new is not None, "a job that is gone is forgotten, not told"
        self.begin(run_of(event.new))
        if event.old is not None and event.old.body is not event.new.body and event.old.spec != event.new.spec:
            self.edges.append(Edge("JobUpdated", now, self.run))

    def _run_at(self, job: Object, event: Event) -> Run:
        """The run in which ``event`` happened: after a start the job's own, as it has not been told yet."""
        return run_of(job) if event.old is None else self.run

    def _was_wanted(self, job: Object, spec: JobSpec, member: Member, event: Event) -> bool:
        """Whether nobody but another than the controller had a reason to delete the pod."""
        task = spec.task(member.task)
        if job.deleting or task is None or member.index >= task.replicas:
            return False
        if self.dealt is not None and member.pod.uid in self.dealt.killed:
            return False
        version, retry = run_of(job)
        if event.old is None:
            # Seen for the first time and already going: of an earlier run unless its labels say that it is of this one.
            return member.version == version and member.retry == retry
        return member.version == self.run[0]


def run_of(job: Object) -> Run:
    """The run that ``job`` is in: its version and its number of retries."""
    return int(job.status.get("version") or 0), int(job.status.get("retryCount") or 0)


def _taken_away(event: Event) -> bool:
    already = event.old is not None and event.old.deleting
    return not already and (event.new is None or event.new.deleting)


def _phase(group: Object | None) -> str:
    return str(group.status.get("phase") or "") if group else ""
