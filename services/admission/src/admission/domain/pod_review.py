"""Pods on their way into an API server: who places them, and the profiles that change them.

The API server completes and checks pods by itself. What is left are the rules that it does not know; they are the same as for
pods that come through our own API.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from admission.domain.colocation_profile import apply_profiles
from admission.domain.errors import FieldError
from admission.domain.pod import check_disruption
from admission.domain.qos_class import check_qos, check_qos_kept
from admission.domain.stated_wishes import check_minimum
from admission.domain.topology import check_podset
from admission.domain.world import Review
from kube import Manifest
from kube.devices import GIVEN
from kube.runtime_classes import class_name

UNCHOSEN = ("", "default-scheduler")
"""Who is to place a pod whose user names nobody: the API server fills the second in."""


@dataclass(frozen=True, slots=True)
class SchedulerRule:
    """Pods with labels that ``pods`` selects, in namespaces that ``namespaces`` selects, are placed by ``scheduler``.

    Those whose users name another scheduler stay that one's. The selectors are LabelSelector objects.
    """

    scheduler: str
    namespaces: Manifest
    pods: Manifest


def choose_scheduler(review: Review, scheduler: str) -> None:
    """A new pod that names no scheduler, and that is on no node yet, is placed by ``scheduler``."""
    spec = review.spec
    if review.creating and (spec.get("schedulerName") or "") in UNCHOSEN and not spec.get("nodeName"):
        spec["schedulerName"] = scheduler


def shape_pod(review: Review) -> None:
    """The profiles that select a new pod change it, and it says nothing of what a binding gives; one that exists keeps its form."""
    if review.creating:
        overhead = review.spec.get("overhead")
        apply_profiles(review)
        if overhead and class_name(review.spec):  # the API server refuses any other than that of the class
            review.spec["overhead"] = overhead
        annotations = review.metadata.get("annotations") or {}
        if not GIVEN.isdisjoint(annotations):
            review.metadata["annotations"] = {key: text for key, text in annotations.items() if key not in GIVEN}


def check_shaped_pod(review: Review) -> Iterable[FieldError]:
    """What must hold of a pod besides what the API server checks.

    Of one that exists only what its update changes: a pod that came in unseen can still be changed, and deleted.
    """
    if not review.creating:
        yield from check_qos_kept(review)
        return
    yield from check_qos(review)
    yield from check_disruption(review)
    annotations = review.metadata.get("annotations") or {}
    yield from check_minimum("metadata.annotations", annotations)
    yield from check_podset("metadata.annotations", annotations)
