"""What has come of the pods of a batch/v1 Job so far, and what that means for the Job.

A pod is counted once, when it is seen to finish; the sums live in the Job's status, so that they outlast the pods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cluster_gateway.domain.controllers.indexes import format_indexes, parse_indexes
from cluster_gateway.domain.controllers.job_failure import Action, action_for
from cluster_gateway.domain.controllers.job_pods import failures_of, index_of, is_indexed
from cluster_gateway.domain.controllers.work import whole
from kube import Manifest, Object, parse_time
from kube.words import counted

_BACKOFF_LIMIT = 6
_UNLIMITED = 2**31 - 1


@dataclass(slots=True)
class JobTally:
    """The sums of one Job."""

    job: Object
    succeeded: int = 0
    failed: int = 0
    completed: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)
    fatal: str = ""
    """Why the pod failure policy fails the Job; "" while it does not."""

    @property
    def completions(self) -> int | None:
        """How many successes are asked for; None where any one will do."""
        given = self.job.spec.get("completions")
        return given if isinstance(given, int) else None if "parallelism" in self.job.spec else 1

    @property
    def parallelism(self) -> int:
        return whole(self.job.spec.get("parallelism"), 1)

    @property
    def limit_per_index(self) -> int | None:
        """How many failures each number may have; None where only all together are limited."""
        given = self.job.spec.get("backoffLimitPerIndex")
        return given if isinstance(given, int) else None

    @property
    def backoff_limit(self) -> int:
        return whole(self.job.spec.get("backoffLimit"), _BACKOFF_LIMIT if self.limit_per_index is None else _UNLIMITED)

    def count(self, finished: Sequence[Object]) -> None:
        """Count pods that have just finished."""
        for pod in sorted(finished, key=lambda pod: pod.key):
            if pod.status.get("phase") == "Succeeded":
                self._succeed(pod)
            else:
                self._fail(pod)

    def _succeed(self, pod: Object) -> None:
        if not is_indexed(self.job):
            self.succeeded += 1
        elif 0 <= index_of(pod) < (self.completions or 0):
            self.completed.add(index_of(pod))
            self.succeeded = len(self.completed)

    def _fail(self, pod: Object) -> None:
        judgement = action_for(self.job, pod)
        if judgement.action is Action.IGNORE:
            return
        if judgement.action is Action.FAIL_JOB:
            self.fatal = self.fatal or judgement.message
        # A pod that was taken away did not fail, whatever its processes said when they were stopped.
        counts = pod.status.get("phase") == "Failed" and not pod.deleting
        self.failed += counts
        used_up = counts and self.limit_per_index is not None and failures_of(pod) >= self.limit_per_index
        if (judgement.action is Action.FAIL_INDEX or used_up) and index_of(pod) not in self.completed:
            self.failed_indexes.add(index_of(pod))

    def success(self, active: int) -> tuple[str, str] | None:
        """Reason and message when the Job has succeeded."""
        met = self._success_rule()
        if met is not None:
            return (
                "SuccessPolicy",
                f"the rule {met} of the success policy is met by indexes {format_indexes(self.completed)}",
            )
        wanted = self.completions
        if wanted is None:
            done = self.succeeded > 0 and active == 0
            return (
                ("CompletionsReached", f"{counted(self.succeeded, 'pod')} succeeded and none is left") if done else None
            )
        if self.succeeded >= wanted:
            return "CompletionsReached", f"{self.succeeded} of {wanted} completions are reached"
        return None

    def _success_rule(self) -> int | None:
        rules = (self.job.spec.get("successPolicy") or {}).get("rules") or () if is_indexed(self.job) else ()
        for number, rule in enumerate(rules):
            listed = rule.get("succeededIndexes")
            wanted = parse_indexes(str(listed)) if listed else set(range(self.completions or 0))
            if len(wanted & self.completed) >= whole(rule.get("succeededCount"), len(wanted)):
                return number
        return None

    def failure(self, restarts: int, now: int, started: int) -> tuple[str, str] | None:
        """Reason and message when the Job has failed. ``restarts`` are those of containers in pods that go on.

        Messages begin as Kubernetes' do: the failure policies of JobSets are matched with them.
        """
        if self.fatal:
            return "PodFailurePolicy", self.fatal
        limit = self.backoff_limit
        if self.failed > limit or (restarts and restarts >= max(limit, 1)):
            return (
                "BackoffLimitExceeded",
                f"Job has reached the specified backoff limit of {limit}: "
                f"{counted(self.failed, 'pod')} failed, {counted(restarts, 'restart')}",
            )
        deadline = self.job.spec.get("activeDeadlineSeconds")
        if isinstance(deadline, int) and now >= started + deadline * 1000:
            return "DeadlineExceeded", f"Job was active longer than specified deadline of {deadline} s"
        return self._too_many_indexes()

    def _too_many_indexes(self) -> tuple[str, str] | None:
        most = self.job.spec.get("maxFailedIndexes")
        text = format_indexes(self.failed_indexes)
        if isinstance(most, int) and len(self.failed_indexes) > most:
            told = "Job has exceeded the specified maximal number of failed indexes"
            return "MaxFailedIndexesExceeded", f"{told}: indexes {text} failed, of which at most {most} may"
        if self.failed_indexes and len(self.failed_indexes | self.completed) >= (self.completions or 0):
            return "FailedIndexes", f"Job has failed indexes: {text}"
        return None

    def status(self) -> Manifest:
        """The sums as fields of the status."""
        wanted: Manifest = {"succeeded": self.succeeded, "failed": self.failed}
        if is_indexed(self.job):
            wanted["completedIndexes"] = format_indexes(self.completed)
        if self.limit_per_index is not None:
            wanted["failedIndexes"] = format_indexes(self.failed_indexes)
        return wanted


def read_tally(job: Object) -> JobTally:
    """The sums as the Job's status has them."""
    status = job.status
    return JobTally(
        job,
        whole(status.get("succeeded"), 0),
        whole(status.get("failed"), 0),
        parse_indexes(str(status.get("completedIndexes") or "")),
        parse_indexes(str(status.get("failedIndexes") or "")),
    )


def started_at(job: Object, now: int) -> int:
    """When (ms) the Job was started, or resumed, last; ``now`` when it is being started."""
    text = job.status.get("startTime")
    return parse_time(str(text)) if text else now
