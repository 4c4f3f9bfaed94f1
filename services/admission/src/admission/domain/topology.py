"""Topologies. Kueue's: their levels, the flavors that name one, what pod sets may ask of them. Koordinator's: their layers."""

from collections.abc import Iterable, Mapping

from admission.domain import names
from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.pod_placement import TOLERATION
from admission.domain.shapes import TEXT, TEXT_MAP, ListOf, closed, entry, fields, one_of
from admission.domain.world import Review

TOPOLOGY_SPEC = closed(levels=ListOf(closed(nodeLabel=TEXT)))
NETWORK_SPEC = closed(
    networkTopologySpec=ListOf(closed(topologyLayer=TEXT, parentTopologyLayer=TEXT, labelKey=ListOf(TEXT)))
)
FLAVOR_SPEC = closed(
    nodeLabels=TEXT_MAP,
    nodeTaints=ListOf(fields(key=TEXT, value=TEXT, effect=TEXT)),
    tolerations=ListOf(TOLERATION),
    topologyName=TEXT,
)

LEVELS_MAX, LABELS_MAX = 16, 8
ROOT_LAYER, LEAF_LAYER = "ClusterTopologyLayer", "NodeTopologyLayer"
HOSTNAME = "kubernetes.io/hostname"
PODSET = "kueue.x-k8s.io/podset-"
NEARNESS = tuple(f"{PODSET}{word}-topology" for word in ("required", "preferred", "unconstrained"))
SLICE_LEVEL, SLICE_SIZE, GROUP = PODSET + "slice-required-topology", PODSET + "slice-size", PODSET + "group-name"
PODSET_ANNOTATIONS = (*NEARNESS, SLICE_LEVEL, SLICE_SIZE, GROUP)


def check_network_layers(review: Review) -> Iterable[FieldError]:
    """Layers with names of their own, each inside one that is there, found by labels unless it is the nodes or all of them."""
    layers = review.spec.get("networkTopologySpec") or []
    known = [str(layer.get("topologyLayer") or "") for layer in layers]
    for index, (name, layer) in enumerate(zip(known, layers, strict=True)):
        where, parent = f"spec.networkTopologySpec[{index}]", layer.get("parentTopologyLayer") or ROOT_LAYER
        if not name or name in known[:index]:
            yield FieldError(f"{where}.topologyLayer", name, "every layer needs a name of its own")
        if parent == name or parent not in (ROOT_LAYER, *known):
            yield FieldError(f"{where}.parentTopologyLayer", parent, "is none of the other layers; name one of them")
        if not layer.get("labelKey") and name not in (ROOT_LAYER, LEAF_LAYER):
            yield FieldError(f"{where}.labelKey", None, "name the node label that tells the domains of the layer apart")


def check_topology_levels(review: Review) -> Iterable[FieldError]:
    """From 1 to 16 different labels, the widest first, single nodes at the end; they stay as they are."""
    levels = review.spec.get("levels") or []
    if not 0 < len(levels) <= LEVELS_MAX:
        yield FieldError("spec.levels", len(levels), f"must be from 1 to {LEVELS_MAX} levels")
    labels = [level.get("nodeLabel") or "" for level in levels]
    for index, label in enumerate(labels):
        where = f"spec.levels[{index}].nodeLabel"
        yield from names.qualified_name(where, label)
        if label == HOSTNAME and index < len(labels) - 1:
            yield FieldError(where, label, "is a single node, so nothing can be below it; make it the last level")
    yield from names.distinct("spec.levels[{}].nodeLabel", labels, "levels")
    if review.old is not None:
        way_out = "delete the Topology and create it anew"
        yield from fixed("spec.levels", review.before("spec", "levels"), review.spec.get("levels"), way_out)


def check_flavor(review: Review) -> Iterable[FieldError]:
    """Labels that are labels; a topology needs some, so that it is known whose nodes it is about."""
    spec = review.spec
    labels = spec.get("nodeLabels") or {}
    yield from names.labels("spec.nodeLabels", labels)
    for part in ("nodeLabels", "nodeTaints", "tolerations"):
        if len(spec.get(part) or ()) > LABELS_MAX:
            yield FieldError(f"spec.{part}", len(spec[part]), f"must be at most {LABELS_MAX}")
    for index, taint in enumerate(spec.get("nodeTaints") or []):
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        yield from one_of(f"spec.nodeTaints[{index}].effect", taint.get("effect") or "", effects)
    if spec.get("topologyName") and not labels:
        yield FieldError("spec.nodeLabels", None, "is required beside topologyName; name the nodes that are meant")


def check_podset(path: str, annotations: Mapping[str, str]) -> Iterable[FieldError]:
    """One wish at the most, for a level that can be a label; slices by level and size; a group only with a level."""
    given = [name for name in NEARNESS if name in annotations]
    if len(given) > 1:
        yield FieldError(entry(path, given[1]), annotations[given[1]], f"give only one of {', '.join(given)}")
    for name in (*NEARNESS[:2], SLICE_LEVEL):
        if name in annotations:
            yield from names.qualified_name(entry(path, name), annotations[name])
    if NEARNESS[2] in annotations:
        yield from one_of(entry(path, NEARNESS[2]), annotations[NEARNESS[2]], ("true", "false"))
    yield from _check_slices(path, annotations)
    if GROUP in annotations and not any(name in annotations for name in NEARNESS[:2]):
        rule = f"needs {NEARNESS[0]} or {NEARNESS[1]}, the level of the domain that the group shares"
        yield FieldError(entry(path, GROUP), annotations[GROUP], rule)


def _check_slices(path: str, annotations: Mapping[str, str]) -> Iterable[FieldError]:
    size = annotations.get(SLICE_SIZE)
    if size is not None and (not size.isdecimal() or int(size) < 1):
        yield FieldError(entry(path, SLICE_SIZE), size, "must be a whole number, at least 1")
    if (SLICE_LEVEL in annotations) != (size is not None):
        missing, there = (SLICE_SIZE, SLICE_LEVEL) if size is None else (SLICE_LEVEL, SLICE_SIZE)
        yield FieldError(entry(path, missing), None, f"is required beside {there}")
