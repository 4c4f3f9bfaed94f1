"""Koordinator's elastic quotas: what an ElasticQuota object says."""

from collections.abc import Mapping
from typing import Any

from kube import Object
from kube.elastic_quotas import ROOT_QUOTA, quota_name
from kube.json_text import read_json
from queue_manager.domain.quotas.queue_tree import PLACEMENT, Queue, amounts_of
from resources import Amounts

LABEL = "quota.scheduling.koordinator.sh/"
NAME = LABEL + "name"

_SPELLED_ROOTS = ("", "koordinator-root-quota")


def is_quota(queue: str) -> bool:
    """Whether a name in the books is a quota's."""
    return queue.startswith(ROOT_QUOTA + "/")


def read_quota(item: Object) -> Queue:
    """The quota as a queue: its minimum is what it deserves, its maximum its capability.

    The root of a tree of its own (``is-root``) has what its ``total-resource`` says, no less and no more; with
    ``ignore-default-tree`` that is nobody else's, even while it is idle.
    """
    labels, spec = item.labels, item.spec
    parent = labels.get(LABEL + "parent", "")
    least, most = amounts_of(spec.get("min")), amounts_of(spec.get("max"))
    total = _listed(item.annotations.get(LABEL + "total-resource")) if labels.get(LABEL + "is-root") == "true" else {}
    apart = bool(total) and labels.get(LABEL + "ignore-default-tree") == "true"
    return Queue(
        name=quota_name(item.name),
        uid=item.uid,
        parent=ROOT_QUOTA if parent in _SPELLED_ROOTS else quota_name(parent),
        deserved=least | total,
        capability=most | total,
        lends=labels.get(LABEL + "allow-lent-resource") != "false" and not apart,
        shared_weight=most | _listed(item.annotations.get(LABEL + "shared-weight")),
        namespace=item.namespace,
        placement=item.annotations.get(PLACEMENT, ""),
    )


def quota_named_by(*places: Mapping[str, str]) -> str:
    """The quota that labels or annotations name, as a queue; "" where they name none."""
    return next((quota_name(place[NAME]) for place in places if place.get(NAME)), "")


def _listed(text: str | None) -> Amounts:
    listed = _parsed(text)
    return amounts_of(listed) if isinstance(listed, dict) else {}


def _parsed(text: str | None) -> Any:
    try:
        return read_json(text) if text else None
    except ValueError:
        return None
