"""QoS classes and priority bands of Koordinator, and which of them go together."""

from collections.abc import Iterable
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.quantities import is_whole, sound_amounts
from admission.domain.shapes import one_of
from admission.domain.world import Review
from kube import Manifest
from kube.colocation import BANDS, NO_BAND, QOS_CLASSES, QOS_LABEL, band_of

PRIORITY_LABEL = "koordinator.sh/priority"

PINNED = ("LSE", "LSR")
# Band → the QoS classes that make no sense in it.
FORBIDDEN = {
    "prod": ("BE",),
    "mid": PINNED,
    "batch": PINNED,
    "free": PINNED,
    NO_BAND: (*PINNED, "BE"),
}
BATCH_RESOURCES = (
    "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory", "koordinator.sh/batch-cpu", "koordinator.sh/batch-memory",
)  # fmt: skip


def check_qos(review: Review) -> Iterable[FieldError]:
    """QoS class and band go together, pinned pods ask for whole CPUs, and batch resources are for BE."""
    where, qos = f'metadata.labels["{QOS_LABEL}"]', review.labels.get(QOS_LABEL, "")
    yield from one_of(where, qos or None, QOS_CLASSES)
    band = band_of(review.labels, review.spec)
    if qos in FORBIDDEN.get(band, ()):
        rule = f"{qos} and priority band {band} do not go together; {_bands_for(qos)}"
        yield FieldError(where, qos, rule)
    batch = sorted({name for name in _requested(review.spec) if name in BATCH_RESOURCES})
    if batch and qos != "BE":
        yield FieldError(where, qos or None, f"must be BE for a pod that asks for {', '.join(batch)}; set the qosClass")
    if qos in PINNED:
        yield from _check_whole_cpus(review.spec, qos)


def check_qos_kept(review: Review) -> Iterable[FieldError]:
    """QoS class, band and sub-priority of a pod stay what they were when it was made."""
    if review.old is None:
        return
    for label in (QOS_LABEL, PRIORITY_LABEL):
        before, after = review.old.labels.get(label, ""), review.labels.get(label, "")
        if before != after:
            rule = f"may not change (it is {before or 'not set'}); delete the pod and create it anew"
            yield FieldError(f'metadata.labels["{label}"]', after, rule)
    old_band, band = band_of(review.old.labels, review.old.spec), band_of(review.labels, review.spec)
    if old_band != band:
        rule = f"may not move from band {old_band} to {band}; delete the pod and create it anew"
        yield FieldError("spec.priority", review.spec.get("priority"), rule)


def _bands_for(qos: str) -> str:
    fitting = [band for band in BANDS if qos not in FORBIDDEN[band]]
    ranges = ", ".join(f"{band} ({BANDS[band][0]}-{BANDS[band][1]})" for band in fitting)
    return f"give it a priority of {ranges}"


def _requested(spec: Manifest) -> Iterable[str]:
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        resources = container.get("resources") or {}
        yield from resources.get("requests") or {}
        yield from resources.get("limits") or {}


def _check_whole_cpus(spec: Manifest, qos: str) -> Iterable[FieldError]:
    cpus: list[Any] = []
    for container in spec.get("containers") or []:
        requests = (container.get("resources") or {}).get("requests") or {}
        cpus += [requests["cpu"]] if "cpu" in requests else []
    total = sum(sound_amounts({"cpu": cpu}).get("cpu", 0) for cpu in cpus)
    if total == 0:
        rule = f"an {qos} pod is pinned to CPUs and must ask for them; set a cpu request"
        yield FieldError("spec.containers[0].resources.requests.cpu", None, rule)
    elif not is_whole(*cpus):
        rule = f"an {qos} pod is pinned and must ask for whole cpus, that is an integer; round the request"
        yield FieldError("spec.containers[0].resources.requests.cpu", f"{total}m", rule)
