"""Nodes that drive their pods away: by taints with the effect NoExecute, which those that are not ready have too.

As Kubernetes' node lifecycle and taint eviction controllers do it: a node that is not ready, or not heard, has a taint for as
long. Who does not tolerate a taint is deleted at once, who tolerates it for so many seconds after these; they count from when
the taint came, or the pod. A pod that says nothing of nodes that are not ready tolerates them for five minutes.
"""

from collections.abc import Iterable, Sequence

from cluster_gateway.domain.controllers.work import Work, condition_of, with_conditions
from kube import Manifest, Object, parse_time, rfc3339
from kube.node_choice import tolerates
from kube.pods import is_finished

NODE, NO_EXECUTE = "Node", "NoExecute"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
OF_READINESS = {"False": NOT_READY, "Unknown": UNREACHABLE}
"""The taint of a node by the status of its condition Ready."""
TOLERATED_SECONDS = 300


def drives_away(node: Object) -> bool:
    """Whether pods may have to leave the node."""
    return bool(_of_readiness(node)) or any(map(_is_driving, _taints(node)))


def reconcile_taints(node: Object, pods: Sequence[Object], work: Work) -> None:
    """Give the node the taints that its readiness demands, each with its time; delete those of its ``pods`` that have to go."""
    taints = list(_timed(node, work.now))
    if taints != _taints(node):
        work.patch(node, {"spec": {"taints": taints or None}})
        return
    driving = [taint for taint in taints if _is_driving(taint)]
    for pod in pods:
        if pod.deleting or is_finished(pod):
            continue
        at = _leaves_at(pod, driving)
        if at is not None and at <= work.now:
            _drive_away(pod, node, work)
        elif at is not None:
            work.look_again(at)


def _drive_away(pod: Object, node: Object, work: Work) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": f"a NoExecute taint of node {node.name} is not tolerated, or not any longer",
        "lastTransitionTime": rfc3339(work.now),
    }
    work.status(pod, {"conditions": with_conditions(pod.status, condition)})
    work.delete(pod)


def _leaves_at(pod: Object, taints: Iterable[Manifest]) -> int | None:
    """When the pod has to go because of ``taints``; None for never. Of several tolerations of one taint the first counts."""
    bound = (condition_of(pod.status, "PodScheduled") or {}).get("lastTransitionTime") or pod.created
    times: list[int] = []
    for taint in taints:
        toleration = next((one for one in pod.spec.get("tolerations") or () if tolerates(one, taint)), None)
        if toleration is None and taint.get("key") not in OF_READINESS.values():
            return 0
        seconds = TOLERATED_SECONDS if toleration is None else toleration.get("tolerationSeconds")
        if seconds is not None:
            since = max(_moment(taint.get("timeAdded")) or 0, _moment(bound) or 0)
            times.append(since + max(0, int(seconds)) * 1000)
    return min(times, default=None)


def _timed(node: Object, now: int) -> Iterable[Manifest]:
    """The node's taints as they should be: those that drive pods away with the time at which they came."""
    wanted, found = _of_readiness(node), False
    for taint in _taints(node):
        driving = _is_driving(taint)
        if driving and taint.get("key") in OF_READINESS.values():
            if taint.get("key") != wanted:
                continue
            found = True
        yield taint if not driving or _moment(taint.get("timeAdded")) else {**taint, "timeAdded": rfc3339(now)}
    if wanted and not found:
        yield {"key": wanted, "effect": NO_EXECUTE, "timeAdded": rfc3339(now)}


def _of_readiness(node: Object) -> str:
    """The key of the taint that a node has because it is not ready; "" for none."""
    conditions = node.status.get("conditions") or ()
    ready = next((one for one in conditions if isinstance(one, dict) and one.get("type") == "Ready"), {})
    return OF_READINESS.get(str(ready.get("status")), "")


def _taints(node: Object) -> list[Manifest]:
    """The taints that can be read; the store holds what it was given."""
    listed = node.spec.get("taints")
    return [taint for taint in listed if isinstance(taint, dict)] if isinstance(listed, list) else []


def _is_driving(taint: Manifest) -> bool:
    return taint.get("effect") == NO_EXECUTE


def _moment(text: object) -> int | None:
    try:
        return parse_time(str(text))
    except ValueError:
        return None
