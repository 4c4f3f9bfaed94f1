"""When pods are expected to end: from what their owners say, else from what ran before."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.pods.pod_record import PodRecord, Standing
from gang_scheduler.domain.pods.run_history import RunHistory
from kube import Event, parse_time
from kube.running_estimates import stated_length


@dataclass(slots=True)
class RunTimes:
    """Estimates of users win over those that were learned."""

    history: RunHistory = field(default_factory=RunHistory)

    def fold(self, run: Sequence[Event], now: int) -> None:
        """Learn from pods that are alike and have just come to a good end."""
        old, new = run[0].old, run[0].new
        if new is None or old is None or new.status is old.status:
            return
        if new.status.get("phase") == "Succeeded" and old.status.get("phase") != "Succeeded":
            for event in run:
                self.history.note(event.object, now)

    def estimate(self, record: PodRecord) -> int | None:
        """How long the pod runs, in milliseconds; the pod's own word wins over that of its gang. None when nobody knows."""
        said = stated(record)
        return self.history.length_ms(record.pod) if said is None else said

    def expected_end(self, record: PodRecord, now: int) -> int | None:
        """When a pod on a node ends, in milliseconds since the epoch; None when that is unknown or it is late already.

        Who is late by an estimate that was only learned is given as long again as it has run.
        """
        said = stated(record)
        length = self.history.length_ms(record.pod) if said is None else said
        if length is None:
            return None
        started = record.pod.status.get("startTime") if record.standing is Standing.RUNNING else None
        try:
            since = parse_time(str(started)) if started else now
        except ValueError:
            return None
        if since + length > now:
            return since + length
        return None if said is not None else now + (now - since)


def stated(record: PodRecord) -> int | None:
    """What the owner of the pod says about how long it runs, in milliseconds; None when that is nothing."""
    group = record.group.pod_group
    return stated_length(record.pod.annotations, group.annotations if group is not None else {})
