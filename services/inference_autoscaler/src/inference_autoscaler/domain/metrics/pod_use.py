"""What pods use of CPU and memory, as the agents of their nodes report it: facts already, so nobody has to hand them in again."""

from collections.abc import Mapping

from inference_autoscaler.domain.metrics.reading import POD, Reading
from kube import Event, Manifest, Object, parse_time
from resources import QuantityError, parse_milli

NODE_METRIC = "NodeMetric.slo.koordinator.sh"
MEASURED = ("cpu", "memory")
OLDEST_MS = 180_000
"""Three times the interval at which agents beside kubelets report: what is older is not known any more."""
_Pods = Mapping[tuple[str, str], Manifest]


class PodUse:
    """The newest report of each node. One is read when somebody asks for a pod of it, and once."""

    def __init__(self) -> None:
        self._reports: dict[str, Object] = {}
        self._read: dict[str, tuple[int, _Pods]] = {}

    def fold(self, event: Event) -> None:
        """Take in that a NodeMetric changed."""
        self._read.pop(event.key.name, None)
        if event.new is None:
            self._reports.pop(event.key.name, None)
        else:
            self._reports[event.key.name] = event.new

    def tells_of(self, pod: Object) -> bool:
        """Whether the node of ``pod`` reports: what is said there is soon said anew, or too old."""
        return str(pod.spec.get("nodeName") or "") in self._reports

    def of(self, pod: Object, metric: str, container: str, now: int) -> Reading | None:
        """What ``pod``, or one container of it, used of ``metric`` by the last report that is not too old, and not of a namesake."""
        node = str(pod.spec.get("nodeName") or "")
        if metric not in MEASURED or node not in self._reports:
            return None
        at, pods = self._read.get(node) or self._take(node)
        told = pods.get((pod.namespace, pod.name))
        if told is None or not _begun(pod) <= at or at < now - OLDEST_MS:
            return None
        try:
            value = parse_milli(_usage(told, container)["resources"][metric])
        except (KeyError, TypeError, AttributeError, QuantityError):
            return None
        return Reading((pod.namespace, POD, pod.name, metric), value, at)

    def _take(self, node: str) -> tuple[int, _Pods]:
        status = self._reports[node].status
        try:
            listed = {
                (str(one.get("namespace") or "default"), str(one["name"])): one
                for one in status.get("podsMetric") or ()
            }
            found = parse_time(str(status["updateTime"])), listed
        except (KeyError, TypeError, ValueError, AttributeError):
            found = (0, {})
        self._read[node] = found
        return found


def _usage(told: Manifest, container: str) -> Manifest:
    """The usage of the pod, or of one of its containers. Raises KeyError where that was not measured."""
    measured: dict[str, Manifest] = (
        {one["name"]: one["usage"] for one in told.get("containers") or ()} if container else {}
    )
    measured[""] = told["podUsage"]
    return measured[container]


def _begun(pod: Object) -> int:
    """When it was made: what was measured before was another one of its name."""
    try:
        return parse_time(pod.created)
    except ValueError:
        return 0
