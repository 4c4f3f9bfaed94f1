"""The pods that a ServingRuntime makes of a model."""

import re
from dataclasses import dataclass
from typing import Any

from inference_autoscaler.domain.serving.runtimes import CONTAINER, Model, runtime_of
from kube import Manifest, Object, Store, merge
from kube.images import untagged

_NOT_OF_PODS = frozenset(
    [
        *("supportedModelFormats", "multiModel", "disabled", "protocolVersions", "workerSpec", "replicas"),
        *("grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "storageHelper", "builtInAdapter"),
        *("labels", "annotations"),
    ]
)
_KEYED = {"env": "name", "ports": "containerPort", "volumeMounts": "mountPath"}
"""Lists of containers whose elements are told apart by a field."""
_PLACEHOLDER = re.compile(r"\{\{\s*\.(Name|Namespace|Labels\.([\w./-]+)|Annotations\.([\w./-]+))\s*\}\}")


@dataclass(frozen=True, slots=True)
class Made:
    """What a runtime makes of a model: the spec of pods, with labels and annotations. ``runtime`` is the one that was chosen."""

    runtime: Object
    pod: Manifest
    labels: dict[str, str]
    annotations: dict[str, str]


def made_of_runtime(model: Model, item: Object, own: Manifest, store: Store) -> Made:
    """The pods that run the model of ``item``, with what its component says of them (``own``) laid over. Raises NoRuntime."""
    runtime = runtime_of(model, item.namespace, store)
    spec = {name: value for name, value in runtime.spec.items() if name not in _NOT_OF_PODS}
    given: dict[str, Manifest] = {one["name"]: one for one in own.get("containers") or ()}
    containers = [
        _laid_over(_filled(one, model) if one.get("name") == CONTAINER else one, given.pop(str(one.get("name")), {}))
        for one in spec.get("containers") or ()
    ]
    pod: Manifest = {**spec, **own, "containers": [*containers, *given.values()]}
    labels, annotations = (runtime.spec.get(name) or {} for name in ("labels", "annotations"))
    return Made(runtime, _named_after(pod, item), labels, annotations)


def _filled(container: Manifest, model: Model) -> Manifest:
    """The runtime's container with what the model says of it; its ``runtimeVersion`` is the tag of the image."""
    merged = _laid_over(container, model.container)
    if model.runtime_version and "image" not in model.container:
        merged["image"] = f"{untagged(str(merged.get('image') or ''))}:{model.runtime_version}"
    return merged


def _laid_over(container: Manifest, own: Manifest) -> Manifest:
    """One container over another: arguments are added, and elements of lists with a name of some kind replace their like."""
    merged: Manifest = merge(container, {name: value for name, value in own.items() if name not in (*_KEYED, "args")})
    if container.get("args") or own.get("args"):
        merged["args"] = [*(container.get("args") or ()), *(own.get("args") or ())]
    for name, key in _KEYED.items():
        listed = {one.get(key): one for source in (container, own) for one in source.get(name) or ()}
        if listed:
            merged[name] = [*listed.values()]
    return merged


def _named_after(value: Any, item: Object) -> Any:
    """Runtimes name what they serve by placeholders such as ``{{.Name}}``."""
    if isinstance(value, dict):
        return {name: _named_after(part, item) for name, part in value.items()}
    if isinstance(value, list):
        return [_named_after(part, item) for part in value]
    return _PLACEHOLDER.sub(lambda found: _said(found, item), value) if isinstance(value, str) else value


def _said(found: re.Match[str], item: Object) -> str:
    if found[1] in ("Name", "Namespace"):
        return item.name if found[1] == "Name" else item.namespace
    return item.labels.get(found[2], "") if found[2] else item.annotations.get(found[3], "")
