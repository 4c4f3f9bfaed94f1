"""Which ServingRuntime runs a model, and the pods that come of it: KServe's choice."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kube import Manifest, Object, Store, merge, parse_time

RUNTIME, CLUSTER_RUNTIME = "ServingRuntime.serving.kserve.io", "ClusterServingRuntime.serving.kserve.io"
CONTAINER = "kserve-container"
SOURCE = "internal.serving.kserve.io/storage-initializer-sourceuri"
"""Annotation of pods that says where their model is to be fetched from."""
_NOT_OF_PODS = frozenset(
    [
        *("supportedModelFormats", "multiModel", "disabled", "protocolVersions", "workerSpec", "replicas"),
        *("grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "storageHelper", "builtInAdapter"),
    ]
)
_OF_CONTAINERS = (
    "resources",
    "env",
    "args",
    "command",
    "image",
    "ports",
    "volumeMounts",
    "livenessProbe",
    "readinessProbe",
)


class NoRuntime(Exception):
    """No runtime can run the model. ``reason`` is KServe's word for it."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Model:
    """What a predictor's ``model`` asks for."""

    name: str
    version: str
    protocol: str
    runtime: str
    runtime_version: str
    storage: str
    container: Manifest

    @classmethod
    def of(cls, given: Manifest) -> "Model":
        """Raises KeyError where it names no format."""
        wanted = given["modelFormat"]
        return cls(
            str(wanted["name"]),
            str(wanted.get("version") or ""),
            str(given.get("protocolVersion") or "v1"),
            str(given.get("runtime") or ""),
            str(given.get("runtimeVersion") or ""),
            str(given.get("storageUri") or ""),
            {name: given[name] for name in _OF_CONTAINERS if name in given},
        )


def pod_of(model: Model, namespace: str, store: Store) -> Manifest:
    """The spec of the pods that run the model. Raises NoRuntime."""
    runtime = _named(model, namespace, store) if model.runtime else _chosen(model, namespace, store)
    spec = {name: value for name, value in runtime.spec.items() if name not in _NOT_OF_PODS}
    spec["containers"] = [
        _filled(one, model) if one.get("name") == CONTAINER else one for one in spec.get("containers") or ()
    ]
    return spec


def _filled(container: Manifest, model: Model) -> Manifest:
    """The runtime's container with what the model says of it laid over; its ``runtimeVersion`` is the tag of the image."""
    merged: Manifest = merge(container, {name: value for name, value in model.container.items() if name != "env"})
    own = {one["name"]: one for one in model.container.get("env") or ()}
    inherited = [one for one in container.get("env") or () if one["name"] not in own]
    if own or inherited:
        merged["env"] = [*inherited, *own.values()]
    if model.runtime_version and "image" not in model.container:
        merged["image"] = f"{_untagged(str(merged.get('image') or ''))}:{model.runtime_version}"
    return merged


def _untagged(image: str) -> str:
    head, colon, tag = image.rpartition(":")
    return head if colon and "/" not in tag else image


def _named(model: Model, namespace: str, store: Store) -> Object:
    """The runtime that the model names: one of its namespace goes before one of the cluster."""
    found = next((one for one in _all(namespace, store) if one.name == model.runtime), None)
    if found is None:
        raise NoRuntime("RuntimeNotRecognized", f"there is no runtime {model.runtime}")
    if found.spec.get("disabled"):
        raise NoRuntime("RuntimeDisabled", f"runtime {model.runtime} is disabled")
    if not _speaks(found, model):
        raise NoRuntime("NoSupportingRuntime", f"runtime {model.runtime} does not speak {model.protocol}")
    if not any(_fits(row, model) for row in _rows(found)):
        raise NoRuntime("NoSupportingRuntime", f"runtime {model.runtime} does not support {_title(model)}")
    return found


def _chosen(model: Model, namespace: str, store: Store) -> Object:
    """The first that fits: those of the namespace before those of the cluster, by priority, newest and name."""
    fitting = [
        (_rank(runtime, row), runtime)
        for runtime in _all(namespace, store)
        if not runtime.spec.get("disabled") and not runtime.spec.get("multiModel") and _speaks(runtime, model)
        for row in _rows(runtime)
        if row.get("autoSelect") and _fits(row, model)
    ]
    if not fitting:
        raise NoRuntime("NoSupportingRuntime", f"no runtime supports {_title(model)} with protocol {model.protocol}")
    return min(fitting, key=lambda one: one[0])[1]


def _rank(runtime: Object, row: Manifest) -> tuple[bool, bool, int, int, str]:
    priority = row.get("priority")
    return (
        runtime.kind != RUNTIME,
        priority is None,
        -int(priority or 0),
        -parse_time(runtime.created),
        runtime.name,
    )


def _all(namespace: str, store: Store) -> Iterator[Object]:
    yield from store.in_namespace(RUNTIME, namespace)
    yield from store.of_kind(CLUSTER_RUNTIME).values()


def _rows(runtime: Object) -> Iterable[Manifest]:
    return runtime.spec.get("supportedModelFormats") or ()


def _speaks(runtime: Object, model: Model) -> bool:
    spoken = runtime.spec.get("protocolVersions") or ()
    return not spoken or model.protocol in spoken


def _fits(row: Manifest, model: Model) -> bool:
    return row.get("name") == model.name and (not model.version or str(row.get("version") or "") == model.version)


def _title(model: Model) -> str:
    return f"{model.name} {model.version}".rstrip()
