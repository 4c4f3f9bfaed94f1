"""PodMigrationJobs of Koordinator: a pod that is to move."""

from collections.abc import Iterable

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.job_policies import check_duration
from admission.domain.shapes import MAPPING, TEXT, TRUTH, Idle, Scalar, closed, one_of
from admission.domain.world import Review

MODES = ("ReservationFirst", "EvictDirectly")
_REFERENCE = closed(
    apiVersion=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT, fieldPath=TEXT, resourceVersion=TEXT
)
_UNUSED = {"preconditions": Idle(MAPPING), **{name: Idle(TEXT) for name in ("apiVersion", "kind", "propagationPolicy")}}
MIGRATION_SPEC = closed(
    paused=TRUTH,
    ttl=TEXT,
    mode=TEXT,
    podRef=_REFERENCE,
    reservationOptions=closed(
        reservationRef=_REFERENCE,
        template=closed(metadata=MAPPING, spec=MAPPING),
        preemptionOptions=MAPPING,
    ),
    deleteOptions=closed(gracePeriodSeconds=Scalar.WHOLE, **_UNUSED),
)


def default_migration(review: Review) -> None:
    """As upstream: a reservation first; a pod without a namespace is in ``default``."""
    spec = review.spec
    spec.setdefault("mode", MODES[0])
    if isinstance(spec.get("podRef"), dict):
        spec["podRef"].setdefault("namespace", "default")


def check_migration(review: Review) -> Iterable[FieldError]:
    """It says which pod, in which way, and for how long it may take."""
    spec = review.spec
    yield from one_of("spec.mode", spec.get("mode") or MODES[0], MODES)
    if spec.get("ttl"):
        yield from check_duration("spec.ttl", spec["ttl"])
    pod = spec.get("podRef") or {}
    if not pod.get("name"):
        yield FieldError("spec.podRef.name", None, "is required; say which pod is to move")
    else:
        yield from names.dns_subdomain("spec.podRef.name", pod["name"])
