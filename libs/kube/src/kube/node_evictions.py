"""Which pods a node asks to be evicted: an annotation of its NodeMetric, as the node says it, and when that was heard."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kube.json_text import read_json
from kube.keys import Manifest
from kube.objects import Object

EVICTIONS = "tidegate.dev/evictions"


@dataclass(frozen=True, slots=True)
class Wish:
    """One pod that has to leave. ``at`` is when its node said so first, by the node's clock."""

    uid: str
    namespace: str
    name: str
    reason: str
    message: str
    at: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """All that a node asks for, and when it was heard by the cluster's clock."""

    heard: int = 0
    pods: tuple[Wish, ...] = ()


def written(heard: int, pods: Sequence[Manifest]) -> str:
    """The text of the annotation; ``pods`` have the fields of ``Wish``."""
    return json.dumps({"heard": heard, "pods": list(pods)}, separators=(",", ":"), sort_keys=True)


def asked(metric: Object | None) -> Wishes:
    """What a NodeMetric says; nothing where it says nothing that could be read."""
    text = metric.annotations.get(EVICTIONS) if metric is not None else None
    try:
        found = read_json(text or "{}")
        return Wishes(int(found.get("heard", 0)), tuple(_wish(one) for one in found.get("pods") or ()))
    except (AttributeError, KeyError, TypeError, ValueError):
        return Wishes()


def _wish(one: Manifest) -> Wish:
    uid, namespace, name, reason, message = (str(one[key]) for key in ("uid", "namespace", "name", "reason", "message"))
    return Wish(uid, namespace, name, reason, message, int(one["at"]))
