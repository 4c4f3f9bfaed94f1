"""The pods that a Volcano Job has, counted the ways its rules need."""

from collections import Counter
from dataclasses import dataclass

from job_controller.domain.reconcile import View
from job_controller.domain.volcano.spec import JobSpec
from kube import Object

TASK = "volcano.sh/task-spec"
INDEX = "volcano.sh/task-index"
VERSION = "volcano.sh/job-version"
RETRY = "volcano.sh/job-retry-count"
PARTITION = "volcano.sh/partition-id"
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of a job. ``version`` is the job's when the pod was made."""

    pod: Object
    task: str
    index: int
    version: int
    retry: int
    phase: str

    @property
    def deleting(self) -> bool:
        return self.pod.deleting

    @property
    def finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def partition(self) -> str:
        return self.pod.labels.get(PARTITION, "")

    @property
    def exit_code(self) -> int | None:
        """The exit code of the first container, 0 counting as none."""
        for status in (self.pod.status.get("containerStatuses") or ())[:1]:
            return ((status.get("state") or {}).get("terminated") or {}).get("exitCode") or None
        return None

    @property
    def restarts(self) -> int:
        statuses = [*(self.pod.status.get("containerStatuses") or ())]
        statuses += self.pod.status.get("initContainerStatuses") or ()
        return sum(int(status.get("restartCount") or 0) for status in statuses)

    @property
    def ready(self) -> bool:
        conditions = self.pod.status.get("conditions") or ()
        return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


@dataclass(frozen=True, slots=True)
class Census:
    """The members of a job, by task and index; ``alive`` are those that nobody has deleted."""

    members: tuple[Member, ...]

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if not member.deleting]

    @property
    def terminating(self) -> int:
        return sum(1 for member in self.members if member.deleting)

    def phases(self) -> Counter[str]:
        """How many members that nobody has deleted are in each phase."""
        return Counter(member.phase for member in self.members if not member.deleting)

    def by_task(self) -> dict[str, Counter[str]]:
        """The same for each task that has members."""
        tasks: dict[str, Counter[str]] = {}
        for member in self.members:
            if not member.deleting:
                tasks.setdefault(member.task, Counter())[member.phase] += 1
        return tasks

    def of_task(self, task: str) -> list[Member]:
        """The members of one task that nobody has deleted."""
        return [member for member in self.members if member.task == task and not member.deleting]


def take_census(job: Object, view: View, spec: JobSpec) -> Census:
    """The pods that ``job`` controls, in the order of its tasks and their indexes."""
    order = {task.name: place for place, task in enumerate(spec.tasks)}
    found = (member_of(item) for item in view.owned(job.uid) if item.kind == "Pod")
    members = [member for member in found if member is not None]
    members.sort(key=lambda member: (order.get(member.task, len(order)), member.task, member.index))
    return Census(tuple(members))


def member_of(pod: Object) -> Member | None:
    """The pod as a member of its job; None when it carries no task."""
    labels = pod.labels
    task = labels.get(TASK)
    if task is None:
        return None
    phase = str(pod.status.get("phase") or "Pending")
    return Member(
        pod=pod,
        task=task,
        index=_number(labels.get(INDEX), pod.name.rpartition("-")[2]),
        version=_number(labels.get(VERSION)),
        retry=_number(labels.get(RETRY)),
        phase=phase if phase in PHASES else "Unknown",
    )


def _number(*texts: str | None) -> int:
    for text in texts:
        if text is not None and text.isdigit():
            return int(text)
    return 0
