"""Which ServingRuntime runs a model: KServe's choice."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kube import Manifest, Object, Store, parse_time

RUNTIME, CLUSTER_RUNTIME = "ServingRuntime.serving.kserve.io", "ClusterServingRuntime.serving.kserve.io"
CONTAINER = "kserve-container"
SOURCE = "internal.serving.kserve.io/storage-initializer-sourceuri"
"""Annotation of pods that says where their model is to be fetched from."""
STORES = "storage-config"
_NOT_OF_CONTAINERS = frozenset(
    [
        "modelFormat",
        "storageUri",
        "modelRepository",
        "storage",
        "protocolVersion",
        "runtime",
        "runtimeVersion",
        "confidential",
        "name",
    ]
)
"""What of a model is no part of its container."""


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
    fetches: tuple[Manifest, ...] = ()
    """Variables for whoever fetches it, where it names a store by its key."""

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
            _storage_of(given),
            {name: value for name, value in given.items() if name not in _NOT_OF_CONTAINERS},
            tuple(_fetches(given.get("storage") or {})),
        )


def _storage_of(given: Manifest) -> str:
    """Where it is: a URI, or a path in a bucket of the store that ``storage`` names."""
    storage = given.get("storage") or {}
    parameters = storage.get("parameters") or {}
    if given.get("storageUri") or not parameters.get("bucket"):
        return str(given.get("storageUri") or "")
    return f"{parameters.get('type') or 's3'}://{parameters['bucket']}/{str(storage.get('path') or '').lstrip('/')}"


def _fetches(storage: Manifest) -> Iterator[Manifest]:
    """The entry of KServe's Secret of stores, and what is said otherwise than there."""
    if storage.get("key"):
        reference = {"name": STORES, "key": storage["key"]}
        yield {"name": "STORAGE_CONFIG", "valueFrom": {"secretKeyRef": reference}}
    if storage.get("parameters"):
        value = json.dumps(storage["parameters"], sort_keys=True)
        yield {"name": "STORAGE_OVERRIDE_CONFIG", "value": value}


def runtime_of(model: Model, namespace: str, store: Store) -> Object:
    """The runtime that runs it. Raises NoRuntime."""
    return _named(model, namespace, store) if model.runtime else _chosen(model, namespace, store)


def _named(model: Model, namespace: str, store: Store) -> Object:
    """The runtime that the model names: one of its namespace goes before one of the cluster."""
    found = next((one for one in _all(namespace, store) if one.name == model.runtime), None)
    if found is None:
        raise NoRuntime("RuntimeNotRecognized", f"there is no runtime {model.runtime}")
    if found.spec.get("disabled"):
        raise NoRuntime("RuntimeDisabled", f"runtime {model.runtime} is disabled")
    if found.spec.get("multiModel"):
        raise NoRuntime(
            "NoSupportingRuntime",
            f"runtime {model.runtime} is multiModel: it serves models of ModelMesh, each of which shares pods",
        )
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
        if not any(runtime.spec.get(field) for field in ("disabled", "multiModel", "workerSpec"))
        and _speaks(runtime, model)
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
