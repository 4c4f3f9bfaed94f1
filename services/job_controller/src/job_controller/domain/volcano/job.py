"""The kind Job of Volcano: what it remembers, and one look at one job."""

from collections.abc import Iterable

from job_controller.domain.reconcile import Actions, Refusal, View
from job_controller.domain.volcano.census import take_census
from job_controller.domain.volcano.command import COMMAND, target_of
from job_controller.domain.volcano.lifecycle import take_turn
from job_controller.domain.volcano.memory import Memory
from job_controller.domain.volcano.refusals import note_refusal, terminate
from job_controller.domain.volcano.spec import JOB, JobSpec, read_spec
from job_controller.domain.volcano.turn import GROUP, Turn
from job_controller.domain.volcano.volumes import CLAIM
from kube import Event, Key, Object


class VolcanoJobs:
    """Volcano Jobs: tasks of pods that start as one gang, with policies for what happens to them."""

    kind = JOB
    watches: tuple[str, ...] = (COMMAND, CLAIM)

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}
        self._specs: dict[str, tuple[object, JobSpec]] = {}

    def observe(self, job: Object, event: Event, now: int) -> None:
        """Remember the edges that policies may speak of."""
        memory = self._memories.setdefault(job.uid, Memory())
        kind = event.key.kind
        if kind == "Pod":
            memory.see_pod(job, self._spec(job), event, now)
        elif kind == GROUP:
            memory.see_group(job, event, now)
        elif kind == JOB:
            memory.see_job(event, now)

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """One look at the job: at most one decision."""
        turn = self._turn(job, view, now)
        take_turn(turn)
        return turn.actions()

    def note_refusal(self, job: Object, view: View, now: int, refusal: Refusal) -> Actions:
        """The job's state tells what is refused until something of it is carried out."""
        return note_refusal(self._turn(job, view, now), refusal)

    def give_up(self, job: Object, view: View, now: int, refusal: Refusal) -> Actions:
        """A job that has not ended is terminated."""
        return terminate(self._turn(job, view, now), refusal)

    def forget(self, uid: str) -> None:
        """The job is gone, and what was remembered of it."""
        self._memories.pop(uid, None)
        self._specs.pop(uid, None)

    def concerned(self, event: Event, view: View) -> Iterable[Key]:
        """The target of a Command; the jobs that name a claim."""
        if event.key.kind == COMMAND:
            key = target_of(event.object)
            return [key] if key else []
        return [job.key for job in view.in_namespace(JOB, event.key.namespace) if _names(job, event.key.name)]

    def _turn(self, job: Object, view: View, now: int) -> Turn:
        spec = self._spec(job)
        memory = self._memories.setdefault(job.uid, Memory())
        memory.dealt = None
        return Turn(job, spec, take_census(job, view, spec), view, memory, now)

    def _spec(self, job: Object) -> JobSpec:
        """The job's spec, read once for each version of it."""
        known = self._specs.get(job.uid)
        if known is None or known[0] is not job.body:
            known = (job.body, read_spec(job))
            self._specs[job.uid] = known
        return known[1]


def _names(job: Object, claim: str) -> bool:
    return any(volume.get("volumeClaimName") == claim for volume in job.spec.get("volumes") or ())
