"""RuntimeClasses: what one says of the pods that name it, and the pods themselves."""

from collections.abc import Iterable

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.pod_placement import TOLERATION, check_placement
from admission.domain.quantities import check_amounts
from admission.domain.shapes import AMOUNTS, TEXT, TEXT_MAP, ListOf, copied, fields
from admission.domain.world import Review
from kube import Key
from kube.runtime_classes import RUNTIME_CLASS as KIND
from kube.runtime_classes import class_name, completed, objections

RUNTIME_CLASS = fields(
    handler=TEXT,
    overhead=fields(podFixed=AMOUNTS),
    scheduling=fields(nodeSelector=TEXT_MAP, tolerations=ListOf(TOLERATION)),
)


def default_runtime_class(review: Review) -> None:
    """Tolerations of a class read like those of pods."""
    for wanted in (review.manifest.get("scheduling") or {}).get("tolerations") or []:
        wanted.setdefault("operator", "Equal")


def check_runtime_class(review: Review) -> Iterable[FieldError]:
    """A class names its handler for ever; overhead and scheduling read as in pods."""
    handler = review.manifest.get("handler")
    if not handler:
        yield FieldError("handler", handler, "is required; name the runtime, such as runc")
    else:
        yield from names.dns_label("handler", handler)
    if review.old is not None and review.before("handler") != handler:
        yield FieldError("handler", handler, f"must stay {review.before('handler')}; make a class of another name")
    yield from check_amounts("overhead.podFixed", (review.manifest.get("overhead") or {}).get("podFixed"))
    yield from check_placement("scheduling", review.manifest.get("scheduling") or {})


def complete_pod(review: Review) -> None:
    """Fill in what the pod's class adds; of a pod that exists, the overhead stays as it is."""
    spec = review.spec
    if review.old is not None and review.old.spec.get("overhead"):
        spec.setdefault("overhead", copied(review.old.spec["overhead"]))
    if "runtimeClassName" in spec:
        spec.update(copied(completed(spec, review.world.get)))


def check_pod_class(review: Review) -> Iterable[FieldError]:
    """The class that a new pod names exists, and the pod does not contradict it."""
    name = class_name(review.spec)
    if review.creating and name:
        for field, why in objections(review.spec, review.world.get(Key(KIND, "", name))):
            yield FieldError(f"spec.{field}", review.spec.get(field), why)
