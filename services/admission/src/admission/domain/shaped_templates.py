"""Colocation profiles in the templates of pods: who makes pods of them asks for what they will be, and counts it.

An API server asks about each pod, too, and finds it shaped already. Where there is none this is the only time: what services
and the cluster itself make of a template is not looked at again.
"""

from collections.abc import Iterator
from typing import Any

from admission.domain.batch_resources import uses_lent_resources
from admission.domain.colocation_profile import KIND, apply_whole_profiles
from admission.domain.rules import RULES
from admission.domain.world import Review
from kube import Key, Manifest
from kube.colocation import QOS_LABEL
from kube.kinds import is_namespaced

_NOT_YET = frozenset(("Pod", "TrainingRuntime.trainer.kubeflow.org"))
"""A pod is none, and of a runtime only a TrainJob makes a template, with amounts of its own."""


def shape_templates(review: Review) -> None:
    """Every template in the object is shaped when it is new. One that exists stays as it is: shaped, or plain."""
    kind = review.key.kind
    if kind in _NOT_YET or kind not in RULES or not is_namespaced(kind) or not review.world.of_kind(KIND):
        return
    old = dict(_templates("", review.old.body)) if review.old is not None else {}
    for path, template in _templates("", review.manifest):
        before = old.get(path)
        if before is None or _is_shaped(before):
            pod = Review(Key("Pod", review.key.namespace, review.key.name), _as_pod(template), None, review.world)
            apply_whole_profiles(pod)
            template.update({part: pod.manifest[part] for part in ("metadata", "spec")})


def _templates(path: str, part: Any) -> Iterator[tuple[str, Manifest]]:
    """The templates of pods in ``part``, each with where it stands."""
    if isinstance(part, list):
        for at, item in enumerate(part):
            yield from _templates(f"{path}[{at}]", item)
    elif isinstance(part, dict):
        for name, item in part.items():
            spec = item.get("spec") if name == "template" and isinstance(item, dict) else None
            if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
                yield f"{path}.{name}", item
            else:
                yield from _templates(f"{path}.{name}", item)


def _as_pod(template: Manifest) -> Manifest:
    return {"metadata": dict(template.get("metadata") or {}), "spec": template["spec"]}


def _is_shaped(template: Manifest) -> bool:
    labels = (template.get("metadata") or {}).get("labels") or {}
    return QOS_LABEL in labels or uses_lent_resources(template["spec"])
