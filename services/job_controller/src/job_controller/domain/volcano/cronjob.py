"""CronJobs of Volcano: a job at each time of a schedule, with rules for overlaps, for lateness and for what is kept."""

from dataclasses import dataclass, field

from job_controller.domain.reconcile import Actions, View
from job_controller.domain.status_patch import changes
from job_controller.domain.volcano.children import child_jobs, ended_at, has_ended, phase_of
from job_controller.domain.volcano.ownership import owned
from kube import Decision, Event, Manifest, Mutation, Object, Verb, api_version_of, key_of, parse_time, rfc3339
from kube.cron import Schedule, ScheduleError, run_name
from kube.words import counted, verb

CRON = "CronJob.batch.volcano.sh"
SCHEDULED = "volcano.sh/cronjob-scheduled-timestamp"


class VolcanoCronJobs:
    """The kind CronJob of Volcano."""

    kind = CRON

    def __init__(self) -> None:
        self._told: dict[str, tuple[str, int | None]] = {}
        """By uid, the last run that was not started, and why: it changes nothing, and is said once."""

    def observe(self, job: Object, event: Event, now: int) -> None:
        """A schedule has no edges."""

    def forget(self, uid: str) -> None:
        """The schedule is gone, and what was said of it."""
        self._told.pop(uid, None)

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """Make the job whose time has come, delete the history that is too long, and set the clock for the next."""
        plan = _Plan(job, child_jobs(view.owned(job.uid)), now)
        plan.trim_history()
        try:
            plan.start_due()
        except ScheduleError as error:
            plan.say("ScheduleRefused", "UnparseableSchedule", str(error))
        actions = plan.actions()
        if not plan.mutations and actions.decisions:
            told = actions.decisions[0].name, plan.due
            if self._told.get(job.uid) == told:
                return Actions(wake_at=actions.wake_at)
            self._told[job.uid] = told
        return actions


@dataclass(slots=True)
class _Plan:
    """One look at one CronJob."""

    cron: Object
    jobs: list[Object]
    now: int
    mutations: list[Mutation] = field(default_factory=list)
    wake_at: int | None = None
    due: int | None = None
    """The run whose time has come and that was not served."""
    _last: str = ""
    _headline: tuple[str, str, str] | None = None

    @property
    def active(self) -> list[Object]:
        return [job for job in self.jobs if not has_ended(job) and not job.deleting]

    @property
    def _schedule(self) -> Schedule:
        return Schedule(str(self.cron.spec.get("schedule") or ""), str(self.cron.spec.get("timeZone") or ""))

    def say(self, name: str, reason: str, message: str) -> None:
        if self._headline is None:
            self._headline = (name, reason, message)

    def trim_history(self) -> None:
        """Delete the oldest jobs that ended, beyond the limits for those that completed and those that did not."""
        for phases, name, default in (
            (("Completed",), "successfulJobsHistoryLimit", 3),
            (("Failed", "Terminated", "Aborted"), "failedJobsHistoryLimit", 1),
        ):
            given = self.cron.spec.get(name)
            limit = default if given is None else max(0, int(given))
            ended = [job for job in self.jobs if phase_of(job) in phases and not job.deleting]
            for job in ended[: max(0, len(ended) - limit)]:
                self._delete(job, "HistoryTrimmed", f"{job.name} ended, and {name} is {limit}")

    def start_due(self) -> None:
        """Make the job of the last time that has come and was not served; raises ScheduleError."""
        spec = self.cron.spec
        if spec.get("suspend"):
            return
        since = self._served_until()
        self.wake_at = self._schedule.next_after(since, self.now)
        due = self.due = self._schedule.due(since, self.now)
        if due is None:
            return
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and self.now - due > int(deadline) * 1000:
            late = (self.now - due) // 1000
            self.say(
                "RunMissed", "MissedSchedule", f"the run of {rfc3339(due)} is {late} s late, {deadline} s are allowed"
            )
            return
        self._start(due)

    def _start(self, due: int) -> None:
        policy = self.cron.spec.get("concurrencyPolicy") or "Allow"
        if policy == "Forbid" and self.active:
            names = ", ".join(job.name for job in self.active)
            self.say("RunHeldBack", "JobAlreadyActive", f"the run of {rfc3339(due)} waits: {names} still runs")
            return
        if policy == "Replace":
            for job in self.active:
                self._delete(job, "RunReplaced", f"{job.name} makes room for the run of {rfc3339(due)}")
        manifest = self._job(due)
        self.mutations.append(Mutation(Verb.CREATE, key_of(manifest), manifest=manifest))
        self._last = rfc3339(due)
        self.say("RunStarted", "ScheduleDue", f"{manifest['metadata']['name']}: the run of {rfc3339(due)}")

    def actions(self) -> Actions:
        patch = changes(self.cron.status, self._status())
        if patch:
            self.mutations.append(Mutation(Verb.STATUS, self.cron.key, uid=self.cron.uid, patch=patch))
        if not self.mutations and self._headline is None:
            return Actions(wake_at=self.wake_at)
        name, reason, message = self._headline or (
            "CronStatusChanged",
            "JobsCounted",
            f"{counted(len(self.active), 'job')} of {self.cron.name} {verb(len(self.active))} active",
        )
        decision = Decision(name, self.cron.key, self.cron.uid, reason, message, tuple(self.mutations))
        return Actions((decision,), self.wake_at)

    def _served_until(self) -> int:
        """The last time that was served; what was due before the CronJob was made is not owed."""
        for text in (self.cron.status.get("lastScheduleTime"), self.cron.created):
            try:
                return parse_time(str(text or ""))
            except ValueError:
                continue
        return self.now

    def _delete(self, job: Object, reason: str, message: str) -> None:
        self.mutations.append(Mutation(Verb.DELETE, job.key, uid=job.uid))
        self.say("RunsDropped", reason, message)

    def _job(self, due: int) -> Manifest:
        template = self.cron.spec.get("jobTemplate") or {}
        given = template.get("metadata") or {}
        annotations = {**(given.get("annotations") or {}), SCHEDULED: self._schedule.written(due)}
        metadata = owned(
            self.cron, run_name(self.cron.name, due), labels=given.get("labels") or {}, annotations=annotations
        )
        spec = template.get("spec") or {}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}

    def _status(self) -> Manifest:
        status: Manifest = {"active": [_reference(job) for job in self.active]}
        last = self._last or self.cron.status.get("lastScheduleTime")
        if last:
            status["lastScheduleTime"] = last
        ended = [ended_at(job) for job in self.jobs if phase_of(job) == "Completed"]
        success = max([*ended, str(self.cron.status.get("lastSuccessfulTime") or "")], default="")
        if success:
            status["lastSuccessfulTime"] = success
        return status


def _reference(job: Object) -> Manifest:
    return {
        "apiVersion": api_version_of(job.kind),
        "kind": "Job",
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.uid,
    }
