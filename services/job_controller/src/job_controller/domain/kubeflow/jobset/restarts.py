"""The attempts of a JobSet: how often it, or one of its Jobs alone, was restarted, as its status keeps it."""

from dataclasses import dataclass

from job_controller.domain.kubeflow.jobset.jobs import ATTEMPT, JOB_ATTEMPT, JOB_INDEX, REPLICATED_JOB
from kube import Manifest, Object

Place = tuple[str, int]
"""A Job by its replicated job and index."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """``counted`` are the restarts that use up maxRestarts; ``of_jobs`` holds (restarts, counted) of single Jobs."""

    restarts: int
    counted: int
    of_jobs: dict[Place, tuple[int, int]]

    @property
    def used(self) -> int:
        """Restarts that count towards maxRestarts, of the set and of single Jobs."""
        return self.counted + sum(counted for _, counted in self.of_jobs.values())

    def of(self, replicated: str, index: int) -> tuple[int, int]:
        """The attempt that a Job of that place should be at: (of the set, of its own)."""
        return (self.restarts, self.of_jobs.get((replicated, index), (0, 0))[0])

    def is_past(self, job: Object) -> bool:
        """Whether the Job is of an attempt before this one."""
        own = (int(job.labels.get(ATTEMPT) or 0), int(job.labels.get(JOB_ATTEMPT) or 0))
        return own != self.of(*place_of(job))

    def after_set_restart(self, counts: bool) -> "Attempts":
        return Attempts(self.restarts + 1, self.counted + counts, self.of_jobs)

    def after_job_restart(self, place: Place, counts: bool) -> "Attempts":
        restarts, counted = self.of_jobs.get(place, (0, 0))
        return Attempts(self.restarts, self.counted, {**self.of_jobs, place: (restarts + 1, counted + counts)})

    def status_of(self, replicated: str, replicas: int) -> Manifest:
        """What the status of a replicated job says of single restarts; nothing where there were none."""
        pairs = [self.of_jobs.get((replicated, index), (0, 0)) for index in range(replicas)]
        if not any(restarts for restarts, _ in pairs):
            return {}
        return {
            "jobRestarts": [restarts for restarts, _ in pairs],
            "jobRestartsCountTowardsMax": [counted for _, counted in pairs],
        }


def read_attempts(status: Manifest) -> Attempts:
    """The attempts as the status keeps them."""
    of_jobs: dict[Place, tuple[int, int]] = {}
    for entry in status.get("replicatedJobsStatus") or []:
        counted = entry.get("jobRestartsCountTowardsMax") or []
        for index, restarts in enumerate(entry.get("jobRestarts") or []):
            if restarts:
                of_jobs[(entry["name"], index)] = (restarts, counted[index] if index < len(counted) else 0)
    return Attempts(int(status.get("restarts") or 0), int(status.get("restartsCountTowardsMax") or 0), of_jobs)


def place_of(job: Object) -> Place:
    """The place of a Job in its set, from its labels."""
    index = job.labels.get(JOB_INDEX, "")
    return (job.labels.get(REPLICATED_JOB, ""), int(index) if index.isdigit() else 0)
