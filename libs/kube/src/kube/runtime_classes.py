"""What a RuntimeClass adds to the pods that name it, as Kubernetes' admission of pods has it.

Its overhead becomes the pod's, its node selector is merged into the pod's, its tolerations are added.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.keys import Key, Manifest
from kube.lent_resources import plain
from kube.objects import Object
from kube.store import Event
from resources import QuantityError, parse_amounts

RUNTIME_CLASS = "RuntimeClass.node.k8s.io"


def class_name(spec: Manifest) -> str:
    """The RuntimeClass that a pod spec names, "" for none."""
    return str(spec.get("runtimeClassName") or "")


def objections(spec: Manifest, found: Object | None) -> Iterator[tuple[str, str]]:
    """What keeps a pod of ``spec`` from being of its class (None: which is not there): field by field, and why."""
    name = class_name(spec)
    if found is None:
        yield "runtimeClassName", f"RuntimeClass {name} does not exist"
        return
    given, fixed = spec.get("overhead"), _overhead(found)
    if given and not _equal(given, fixed):
        yield "overhead", f"overhead of RuntimeClass {name} is {_told(fixed)}, the pod's is {_told(given)}"
    own = spec.get("nodeSelector") or {}
    for label, value in _selector(found).items():
        if own.get(label, value) != value:
            yield (
                "nodeSelector",
                f"RuntimeClass {name} is for nodes with {label}={value}, the pod for {label}={own[label]}",
            )


def with_class(spec: Manifest, found: Object) -> Manifest:
    """The spec with what its class adds; ``spec`` itself where nothing is missing. There must be no objection."""
    added: Manifest = {}
    overhead, selector = _overhead(found), _selector(found)
    if overhead and not spec.get("overhead"):
        added["overhead"] = overhead
    own = spec.get("nodeSelector") or {}
    if not selector.items() <= own.items():
        added["nodeSelector"] = {**own, **selector}
    tolerations = spec.get("tolerations") or []
    missing = [item for item in _scheduling(found).get("tolerations") or () if item not in tolerations]
    if missing:
        added["tolerations"] = [*tolerations, *missing]
    return {**spec, **added} if added else spec


def completed(spec: Manifest, get: Callable[[Key], Object | None]) -> Manifest:
    """The spec with what its class adds; as it is where the class, looked up by ``get``, is missing or contradicted."""
    name = class_name(spec)
    found = get(Key(RUNTIME_CLASS, "", name)) if name else None
    return spec if found is None or any(True for _ in objections(spec, found)) else with_class(spec, found)


@dataclass(slots=True)
class RuntimeClasses:
    """The RuntimeClasses that there are."""

    by_name: dict[str, Object] = field(default_factory=dict)

    def fold(self, event: Event) -> None:
        """A class came, changed or went."""
        if event.new is None:
            self.by_name.pop(event.key.name, None)
        else:
            self.by_name[event.key.name] = event.new

    def objection(self, spec: Manifest) -> str:
        """Why a pod of ``spec`` cannot be of the class that it names; "" where it can, or names none."""
        name = class_name(spec)
        return next((why for _, why in objections(spec, self.by_name.get(name))), "") if name else ""

    def in_templates(self, part: Any) -> Any:
        """A part of an object with what the classes add to every pod template somewhere in it; itself without any class."""
        if not self.by_name:
            return part
        if isinstance(part, list):
            items = [self.in_templates(item) for item in part]
            return part if all(new is old for new, old in zip(items, part, strict=True)) else items
        if not isinstance(part, dict):
            return part
        if isinstance(part.get("containers"), list) and class_name(part):
            return completed(part, lambda key: self.by_name.get(key.name))
        changed = {name: new for name, item in part.items() if (new := self.in_templates(item)) is not item}
        return {**part, **changed} if changed else part


def _overhead(found: Object) -> Mapping[str, Any]:
    fixed: Mapping[str, Any] = (found.body.get("overhead") or {}).get("podFixed") or {}
    return fixed


def _scheduling(found: Object) -> Manifest:
    scheduling: Manifest = found.body.get("scheduling") or {}
    return scheduling


def _selector(found: Object) -> dict[str, str]:
    selector: dict[str, str] = _scheduling(found).get("nodeSelector") or {}
    return selector


def _equal(given: Mapping[str, Any], fixed: Mapping[str, Any]) -> bool:
    """Whether both are the same; a pod on lent resources has its overhead there, too."""
    try:
        return plain(parse_amounts(given)) == parse_amounts(fixed)
    except QuantityError:
        return False


def _told(amounts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items())) or "none"
