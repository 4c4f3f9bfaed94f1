"""Which pods an API server need not ask about, as expressions that it evaluates itself (CEL, its ``matchConditions``)."""

from collections.abc import Iterable, Sequence

import orjson

from admission.authors import PARTS
from apiserver import field_manager
from kube import Manifest

_LABELS = "object.metadata.labels"
MOST_PROFILES = 32
"""An API server limits what the conditions of a webhook may cost: with more profiles it asks about every pod."""
IN_CLUSTER_NAME = "kubernetes.io/metadata.name"
"""The label of every namespace that holds its name."""


def chosen_by_nobody(unchosen: Sequence[str]) -> Manifest:
    """Pods that name no scheduler (or one of ``unchosen``), and that are on no node yet."""
    names = _list(unchosen)
    free = "(!has(object.spec.nodeName) || object.spec.nodeName == '')"
    return _condition(
        "unchosen", f"{free} && (!has(object.spec.schedulerName) || object.spec.schedulerName in {names})"
    )


def selected(profiles: Sequence[Manifest]) -> list[Manifest]:
    """Pods that one of the ``profiles``, given by their specs, may select; no condition where that can be any pod."""
    if len(profiles) > MOST_PROFILES:
        return []
    tests = [" && ".join(_profile(spec)) for spec in profiles]
    return [] if "" in tests else [_condition("selected", " || ".join(f"({test})" for test in tests))]


def marked(labels: Iterable[str], annotations: Iterable[str], resources: Iterable[str]) -> Manifest:
    """Pods that have one of these labels or annotations, before or after a change, or that ask for one of the ``resources``."""
    tests = [
        _has(f"{which}.metadata.{place}", key)
        for place, keys in (("labels", labels), ("annotations", annotations))
        for key in keys
        for which in ("object", "oldObject")
    ]
    asked = " || ".join(f"{_text(name)} in c.resources.requests" for name in resources)
    tests.append(f"object.spec.containers.exists(c, has(c.resources) && has(c.resources.requests) && ({asked}))")
    return _condition("marked", " || ".join(f"({test})" for test in tests))


def annotated(annotations: Iterable[str]) -> Manifest:
    """Objects that have one of these annotations."""
    tests = (f"({_has('object.metadata.annotations', key)})" for key in annotations)
    return _condition("annotated", " || ".join(tests))


def written_by_others(users: Sequence[str]) -> list[Manifest]:
    """Requests of anybody but ``users``; without any, what the system's own parts do not write, as they say themselves."""
    if users:
        return [_condition("others", f"!(request.userInfo.username in {_list(users)})")]
    own = _list(sorted(field_manager(part) for part in PARTS if part))
    stated = "has(request.options) && has(request.options.fieldManager)"
    return [_condition("others", f"!({stated} && request.options.fieldManager in {own})")]


def _condition(name: str, expression: str) -> Manifest:
    return {"name": f"{name}.tidegate.dev", "expression": expression}


def _profile(spec: Manifest) -> Iterable[str]:
    """What must hold of a pod; of its namespace only what its name tells, for an API server does not show the rest."""
    yield from _selector(spec.get("selector"), _LABELS)
    for key, operator, values in _expressions(spec.get("namespaceSelector")):
        if key == IN_CLUSTER_NAME and operator == "In":
            yield f"request.namespace in {_list(values)}"


def _selector(selector: Manifest | None, place: str) -> Iterable[str]:
    for key, operator, values in _expressions(selector):
        there, value = _has(place, key), f"{place}[{_text(key)}]"
        if operator in ("In", "NotIn"):
            inside = f"({there} && {value} in {_list(values)})"
            yield inside if operator == "In" else f"!{inside}"
        else:
            yield f"({there})" if operator == "Exists" else f"!({there})"


def _expressions(selector: Manifest | None) -> Iterable[tuple[str, str, Sequence[str]]]:
    """A LabelSelector as (key, operator, values)."""
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        yield key, "In", (value,)
    for one in (selector or {}).get("matchExpressions") or ():
        yield one["key"], one["operator"], one.get("values") or ()


def _has(place: str, key: str) -> str:
    owner, _, field = place.partition(".metadata.")
    return f"{owner} != null && has({owner}.metadata.{field}) && {_text(key)} in {place}"


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    """A string of CEL: one of JSON is one."""
    return orjson.dumps(value).decode()
