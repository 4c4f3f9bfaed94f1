"""An inference service as the request path sees it: its names, its parts, and who gets what share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inference_gateway.domain.serving.names import hosts, model_host
from inference_gateway.domain.serving.replica import Pool
from kube import Key, Manifest, Object
from kube.keys import kind_id

SERVICE = "InferenceService.serving.kserve.io"
GRAPH = kind_id("serving.kserve.io/v1alpha1", "InferenceGraph")
KINDS = frozenset((SERVICE, GRAPH))
GROUP = "serving.kserve.io/"
MODELS = "tidegate.dev/models"
"""Annotation: the models that the service answers for besides the one of its own name, separated by commas."""
COMPONENTS = ("transformer", "predictor", "explainer")
ALL = 100
_STANDARD = ("Standard", "RawDeployment")
_MODEL_FLAGS = ("--model_name=", "--model-name=", "--load-model=")

Split = tuple[tuple[Pool, int], ...]
"""Pools with the percentage of the requests that each gets, by name."""


@dataclass(frozen=True, slots=True)
class Component:
    """``split`` is empty while no revision may get requests. ``limit`` is how many a replica takes at once, 0 for any number.

    ``timeout_seconds`` is how long an answer may take, 0 for as long as it likes.
    """

    split: Split
    limit: int = 0
    timeout_seconds: int = 0

    def choose(self, number: int) -> Pool | None:
        """Who gets the request whose number is ``number``, of 0 to 99."""
        reached = 0
        for pool, percent in self.split:
            reached += percent
            if number % ALL < reached:
                return pool
        return None


@dataclass(frozen=True, slots=True)
class Service:
    """``entry`` is the component that requests come to first; ``parts`` are all. A graph has its router alone, under no name."""

    key: Key
    uid: str
    entry: str
    parts: Mapping[str, Component]
    models: tuple[str, ...]
    is_stopped: bool = False

    def hosts(self, domain: str) -> Iterator[tuple[str, str]]:
        """Its hosts, each with the component that is meant; those that are surely its own first."""
        for name, component in self.own_names().items():
            yield from ((host, component) for host in hosts(name, self.key.namespace, domain))

    def own_names(self) -> dict[str, str]:
        """Its own name and those of its components, each with the component that is meant."""
        return {self.key.name: self.entry, **{f"{self.key.name}-{one}": one for one in self.parts if one}}

    @property
    def is_measured(self) -> bool:
        """Whether anybody goes by its load: the routers of graphs are sized by what they use."""
        return self.key.kind == SERVICE

    def names(self) -> tuple[object, ...]:
        """What its hosts depend on."""
        return self.entry, tuple(self.parts), self.models

    def model_hosts(self) -> list[str]:
        """The hosts that stand for its models."""
        return [model_host(model) for model in self.models]

    def pools(self) -> list[Pool]:
        """All that have a share, by name."""
        return sorted({pool for part in self.parts.values() for pool, _ in part.split})


def read(item: Object) -> Service | None:
    """What ``item`` says; None while it makes no sense."""
    stopped = item.annotations.get(f"{GROUP}stop") == "true"
    if item.kind == GRAPH:
        timeout = item.spec.get("timeout")
        router = Component((((item.namespace, item.name), ALL),), 0, timeout if isinstance(timeout, int) else 0)
        return Service(item.key, item.uid, "", {"": router}, (), stopped)
    try:
        spec = item.spec
        parts = {name: _component(item, name) for name in COMPONENTS if spec.get(name) is not None}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if "predictor" not in parts:
        return None
    entry = next(iter(parts))
    return Service(item.key, item.uid, entry, parts, _models(item), stopped)


def _component(item: Object, name: str) -> Component:
    spec: Manifest = item.spec[name]
    told: Manifest = (item.status.get("components") or {}).get(name) or {}
    shares = {str(one["revisionName"]): int(one["percent"]) for one in told.get("traffic") or ()}
    if not shares and _is_standard(item):
        shares = {f"{item.name}-{name}": ALL}
    split = tuple(((item.namespace, pool), percent) for pool, percent in sorted(shares.items()) if percent > 0)
    return Component(split, int(spec.get("containerConcurrency") or 0), int(spec.get("timeout") or 0))


def _is_standard(item: Object) -> bool:
    mode = item.status.get("deploymentMode") or item.annotations.get(f"{GROUP}deploymentMode")
    return mode in _STANDARD


def _models(item: Object) -> tuple[str, ...]:
    """The models that it answers for: of its own name, as its server is told, and as it says itself."""
    listed = str(item.annotations.get(MODELS) or "").split(",")
    predictor: Manifest = item.spec["predictor"]
    blocks = [predictor.get("model") or {}, *(predictor.get("containers") or ())]
    words = [str(word) for one in blocks for word in (*(one.get("command") or ()), *(one.get("args") or ()))]
    told = [word.removeprefix(flag) for word in words for flag in _MODEL_FLAGS if word.startswith(flag)]
    named = (name.strip() for name in (item.name, *told, *listed))
    return tuple(dict.fromkeys(name for name in named if name and "{" not in name and "*" not in name))
