"""ClusterColocationProfiles: how plain pods become pods that live on what others leave idle."""

import hashlib
from collections.abc import Iterable

from admission.domain import names
from admission.domain.batch_resources import translate, uses_lent_resources
from admission.domain.errors import FieldError
from admission.domain.priority import check_priority_class_name, find_class
from admission.domain.qos_class import PRIORITY_LABEL
from admission.domain.selectors import SELECTOR, check_selector, matches
from admission.domain.shapes import ANYTHING, EITHER, TEXT, TEXT_MAP, WHOLE, closed, copied, one_of
from admission.domain.strategic_merge import merged
from admission.domain.world import Review
from kube import Key, Manifest, Object
from kube.colocation import QOS_CLASSES, QOS_LABEL, band_of

PROFILE_SPEC = closed(
    namespaceSelector=SELECTOR,
    selector=SELECTOR,
    probability=EITHER,
    qosClass=TEXT,
    priorityClassName=TEXT,
    koordinatorPriority=WHOLE,
    labels=TEXT_MAP,
    annotations=TEXT_MAP,
    labelKeysMapping=TEXT_MAP,
    annotationKeysMapping=TEXT_MAP,
    labelSuffixes=TEXT_MAP,
    schedulerName=TEXT,
    patch=ANYTHING,
)
KIND = "ClusterColocationProfile.config.koordinator.sh"
DRAWN = "tidegate.dev/drawn"
"""The annotation of a pod without a name yet that says which profiles it was drawn for."""
KEEPS_RESOURCES = "config.koordinator.sh/skip-update-resources"


def apply_profiles(review: Review) -> None:
    """Every profile that selects the new pod changes it, in the order of the profiles' names.

    A pod that exists keeps the form that it got then, so that its own manifest, applied again, is no change: the classes, too,
    that profiles would give it. A class that its user has named stays only as long as it is named. A new pod may come twice, when
    others have changed it in between: what a profile has done already is not done again.
    """
    if review.old is not None:
        _keep_form(review, review.old)
        return
    shape(review, [profile for profile in review.world.of_kind(KIND).values() if _selects(profile, review)])


def apply_whole_profiles(review: Review) -> None:
    """What profiles that take every pod make of a template: those that draw lots draw for each pod, and not for all at once."""
    whole = (one for one in review.world.of_kind(KIND).values() if percent_of(one.spec.get("probability", 100)) == 100)
    shape(review, [profile for profile in whole if _selects(profile, review)])


def shape(review: Review, profiles: list[Object]) -> None:
    """Let these profiles change a pod, in the order of their names."""
    for profile in sorted(profiles, key=lambda item: item.name):
        _apply(profile.spec, review)
    if profiles and not any(KEEPS_RESOURCES in profile.annotations for profile in profiles):
        translate(review.spec, band_of(review.labels, review.spec))


def _keep_form(review: Review, old: Object) -> None:
    missing = [name for name in (QOS_LABEL, PRIORITY_LABEL) if name in old.labels and name not in review.labels]
    if missing:
        anew = Review(review.key, copied(review.manifest), None, review.world)
        apply_profiles(anew)
        kept = {name: old.labels[name] for name in missing if name in anew.labels}
        review.metadata["labels"] = kept | review.labels
    if uses_lent_resources(old.spec):
        translate(review.spec, band_of(old.labels, old.spec))


def _selects(profile: Object, review: Review) -> bool:
    spec = profile.spec
    if "namespaceSelector" in spec:
        namespace = review.world.get(Key("Namespace", "", review.key.namespace))
        if not matches(spec["namespaceSelector"], namespace.labels if namespace else {}):
            return False
    if "selector" in spec and not matches(spec["selector"], review.labels):
        return False
    return _drawn(profile.name, review, percent_of(spec.get("probability", 100)) or 0)


def _drawn(profile: str, review: Review, percent: int) -> bool:
    """Whether this pod is among ``percent`` of all: always the same answer for the same pod and profile.

    An API server asks before it has made a name of ``generateName``, and may ask twice: the pods of a Deployment are told apart by
    the uid of the question, and what was drawn is noted on the pod.
    """
    if percent >= 100 or review.metadata.get("name"):
        return _draw(profile, review, str(review.metadata.get("name") or "")) < percent
    annotations: dict[str, str] = review.metadata.setdefault("annotations", {})
    noted = dict(note.split("=", 1) for note in annotations.get(DRAWN, "").split(",") if "=" in note)
    if profile not in noted:
        by = str(review.metadata.get("uid") or review.metadata.get("generateName") or "")
        noted[profile] = "yes" if _draw(profile, review, by) < percent else "no"
        annotations[DRAWN] = ",".join(f"{name}={word}" for name, word in sorted(noted.items()))
    return noted[profile] == "yes"


def _draw(profile: str, review: Review, by: str) -> int:
    """From 0 to 99."""
    text = f"{profile}/{review.key.namespace}/{by}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % 100


def percent_of(value: int | str) -> int | None:
    """``30`` and ``"30%"`` as 30; None for what is no percentage from 0 to 100."""
    text = str(value).removesuffix("%")
    return int(text) if text.isdigit() and int(text) <= 100 else None


def _apply(spec: Manifest, review: Review) -> None:
    labels = review.metadata.setdefault("labels", {})
    annotations = review.metadata.setdefault("annotations", {})
    labels.update(spec.get("labels") or {})
    annotations.update(spec.get("annotations") or {})
    for held, mapping in ((labels, "labelKeysMapping"), (annotations, "annotationKeysMapping")):
        for source, target in (spec.get(mapping) or {}).items():
            if source in held:
                held[target] = held[source]
    for key, suffix in (spec.get("labelSuffixes") or {}).items():
        if key in labels and not labels[key].endswith(suffix):
            labels[key] += suffix
    if spec.get("schedulerName"):
        review.spec["schedulerName"] = spec["schedulerName"]
    if spec.get("qosClass"):
        labels[QOS_LABEL] = spec["qosClass"]
    if "koordinatorPriority" in spec:
        labels[PRIORITY_LABEL] = str(spec["koordinatorPriority"])
    _apply_priority(spec.get("priorityClassName"), review)
    for part, change in (spec.get("patch") or {}).items():
        if part in ("metadata", "spec") and isinstance(change, dict):
            review.manifest[part] = merged(review.manifest.get(part) or {}, change)


def _apply_priority(name: str | None, review: Review) -> None:
    if not name:
        return
    review.spec["priorityClassName"] = name
    found = find_class(review.world, name)
    if found is not None:
        review.spec["priority"] = int(found.body.get("value") or 0)
        review.spec["preemptionPolicy"] = found.body.get("preemptionPolicy") or "PreemptLowerPriority"


def check_profile(review: Review) -> Iterable[FieldError]:
    """Selectors, classes and keys are what they have to be."""
    spec = review.spec
    yield from check_selector("spec.namespaceSelector", spec.get("namespaceSelector"))
    yield from check_selector("spec.selector", spec.get("selector"))
    yield from one_of("spec.qosClass", spec.get("qosClass") or None, QOS_CLASSES)
    yield from names.labels("spec.labels", spec.get("labels") or {})
    for mapping in ("labelKeysMapping", "annotationKeysMapping"):
        for target in (spec.get(mapping) or {}).values():
            yield from names.qualified_name(f"spec.{mapping}", target)
    if "probability" in spec and percent_of(spec["probability"]) is None:
        yield FieldError("spec.probability", spec["probability"], "must be a percentage from 0% to 100%")
    yield from check_priority_class_name("spec.priorityClassName", review.world, spec.get("priorityClassName"))
