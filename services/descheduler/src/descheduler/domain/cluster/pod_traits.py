"""What a pod is to those who might move it: how important, what it costs to lose it, what it asks of its node."""

from kube import Object, parse_time
from kube.colocation import BEST_EFFORT, BURSTABLE, GUARANTEED, band_with_default, kubernetes_qos, qos_of
from kube.lent_resources import current
from kube.pods import is_finished, sound_pod_request
from resources import Amounts

POD = "Pod"
PODS = "pods"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
NEVER = (1 << 31) - 1
"""The eviction cost of a pod that is not to be evicted."""

_BANDS = {"free": 1, "batch": 2, "mid": 3, "prod": 4}
_KUBERNETES_QOS = {BEST_EFFORT: 1, BURSTABLE: 2, GUARANTEED: 3}
_QOS = {"BE": 1, "LS": 2, "LSR": 3, "LSE": 4, "SYSTEM": 4}

Importance = tuple[int, int, int, int, int, int]


def is_active(pod: Object) -> bool:
    """Whether the pod holds its place: neither finished nor on its way out."""
    return not pod.deleting and not is_finished(pod)


def node_of(pod: Object) -> str:
    """The node that it is bound to; empty for none."""
    return str(pod.spec.get("nodeName") or "")


def is_prod(pod: Object) -> bool:
    """Whether it is of the band ``prod``."""
    return band_with_default(pod.labels, pod.spec) == "prod"


def importance(pod: Object) -> Importance:
    """What goes first has the lowest: band, priority, Kubernetes' and Koordinator's QoS, costs of deletion and of eviction."""
    return (
        _BANDS.get(band_with_default(pod.labels, pod.spec), 5),
        int(pod.spec.get("priority") or 0),
        _KUBERNETES_QOS[kubernetes_qos(pod.spec)],
        _QOS.get(qos_of(pod.labels, pod.spec), 5),
        whole(pod.annotations.get(DELETION_COST)),
        whole(pod.annotations.get(EVICTION_COST)),
    )


def whole(text: str | None) -> int:
    """A number in an annotation; what is none counts as 0."""
    given = text or ""
    return int(given) if given.lstrip("-").isdigit() else 0


def requests_of(pod: Object) -> Amounts:
    """What it takes of a node, a place among its pods included."""
    return {**current(sound_pod_request(pod.spec)), PODS: 1}


def began_at(pod: Object) -> int:
    """When it came to its node, in ms since the epoch; 0 where nobody wrote that down."""
    return moment(str(pod.status.get("startTime") or pod.created or ""))


def moment(text: str) -> int:
    """A time of a manifest in ms since the epoch; 0 for what is none."""
    try:
        return parse_time(text) if text else 0
    except ValueError:
        return 0
