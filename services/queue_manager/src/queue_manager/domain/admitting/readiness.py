"""How many pods of each workload are ready, or have succeeded."""

from dataclasses import dataclass, field

from kube import Event, Key, Object
from kube.pods import is_ready
from queue_manager.domain.members.members import LOCAL_QUEUE, group_named_by
from queue_manager.domain.workloads.job_workload import holder_of


def workload_of(pod: Object) -> Key | None:
    """The workload that a pod is of: its group, its Job, or itself; None for one that is in no LocalQueue.

    Of a group the PodGroup says in which queue it is; its pods need not say it again.
    """
    return holder_of(pod) if LOCAL_QUEUE in pod.labels or group_named_by(pod) else None


@dataclass(slots=True)
class Readiness:
    """``changed`` are the workloads of which another number is ready than before; whoever reads them clears them."""

    changed: dict[Key, None] = field(default_factory=dict)
    _pods: dict[Key, Key] = field(default_factory=dict)
    _ready: dict[Key, dict[Key, None]] = field(default_factory=dict)

    def fold(self, event: Event) -> None:
        """Take in a change of a pod."""
        pod = event.new
        source = workload_of(pod) if pod is not None else None
        counts = pod is not None and source is not None and not pod.deleting
        serves = counts and pod is not None and (is_ready(pod) or pod.status.get("phase") == "Succeeded")
        before = self._pods.get(event.key)
        after = source if serves else None
        if before == after:
            return
        if before is not None:
            del self._pods[event.key]
            left = self._ready[before]
            del left[event.key]
            if not left:
                del self._ready[before]
            self.changed[before] = None
        if after is not None:
            self._pods[event.key] = after
            self._ready.setdefault(after, {})[event.key] = None
            self.changed[after] = None

    def of(self, source: Key) -> int:
        """How many pods of the workload are ready."""
        return len(self._ready.get(source, ()))
