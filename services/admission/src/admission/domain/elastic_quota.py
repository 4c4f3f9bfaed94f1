"""ElasticQuotas: a tree of minima that are lent and maxima that are not passed."""

from collections.abc import Iterable, Mapping

from admission.domain.errors import FieldError
from admission.domain.quantities import at_most, check_amounts, sound_amounts
from admission.domain.shapes import AMOUNTS, closed, entry
from admission.domain.world import Review, World
from kube import Manifest, Object
from kube.words import counted
from resources import Amounts, add, subtract
from resources.amounts import format_amount

QUOTA_SPEC = closed(min=AMOUNTS, max=AMOUNTS)
KIND = "ElasticQuota.scheduling.sigs.k8s.io"
PREFIX = "quota.scheduling.koordinator.sh/"
PARENT, IS_PARENT, NAME, TREE, FORCE = (
    PREFIX + word for word in ("parent", "is-parent", "name", "tree-id", "allow-force-update")
)
ROOT, DEFAULT, SYSTEM = "koordinator-root-quota", "koordinator-default-quota", "koordinator-system-quota"
BUILT_IN = (ROOT, DEFAULT, SYSTEM)
FINISHED = ("Succeeded", "Failed")


def find_quota(world: World, name: str) -> Object | None:
    """The quota ``name`` in whatever namespace: names of quotas are names in the cluster."""
    found = [item for key, item in world.of_kind(KIND).items() if key.name == name]
    return min(found, key=lambda item: item.namespace, default=None)


def parent_of(labels: Mapping[str, str]) -> str:
    return labels.get(PARENT) or ROOT


def children_of(world: World, name: str) -> list[Object]:
    """The quotas right under ``name``, by name."""
    found = [item for item in world.of_kind(KIND).values() if parent_of(item.labels) == name and item.name != name]
    return sorted(found, key=lambda item: item.key)


def pods_of(world: World, name: str) -> list[Object]:
    """The pods that count for the quota ``name`` and have not ended, by name."""
    found = [
        pod
        for pod in world.of_kind("Pod").values()
        if pod.labels.get(NAME) == name and pod.status.get("phase") not in FINISHED
    ]
    return sorted(found, key=lambda pod: pod.key)


def check_quota_amounts(review: Review) -> Iterable[FieldError]:
    """Amounts are not negative, and what has a minimum has a maximum that is not below it."""
    spec = review.spec
    least, most = spec.get("min") or {}, spec.get("max") or {}
    yield from check_amounts("spec.min", least)
    yield from check_amounts("spec.max", most)
    for name in least:
        if name not in most:
            yield FieldError(entry("spec.min", name), least[name], f"{name} has a min but no max; give it a max too")
    yield from at_most("spec.min", sound_amounts(least), sound_amounts(most), "the quota's spec.max")


def check_quota_place(review: Review) -> Iterable[FieldError]:
    """The parent exists and is one, no children or pods are left behind, and the minima of siblings fit into it."""
    labels, name = review.labels, review.key.name
    parent = parent_of(labels)
    holder = find_quota(review.world, parent)
    where = f'metadata.labels["{PARENT}"]'
    if parent == name and name not in BUILT_IN:
        yield FieldError(where, parent, f"quota {name} cannot be its own parent; name another one")
    elif holder is None and parent not in BUILT_IN:
        yield FieldError(where, parent, f"quota {parent} does not exist; create it first or name one that does")
    elif holder is not None and holder.name not in BUILT_IN:
        yield from _check_under(review, holder)
    yield from _check_tree_kept(review, holder)
    yield from _check_is_parent(review)
    yield from _check_children(review)


def _check_under(review: Review, holder: Object) -> Iterable[FieldError]:
    if holder.labels.get(IS_PARENT) != "true":
        rule = f'quota {holder.name} is no parent; label it {IS_PARENT}: "true" first'
        yield FieldError(f'metadata.labels["{PARENT}"]', holder.name, rule)
    tree = holder.labels.get(TREE, "")
    if review.labels.get(TREE, tree) != tree:
        yield FieldError(f'metadata.labels["{TREE}"]', review.labels[TREE], f"must be that of the parent ({tree!r})")
    yield from _same_resources(review.spec, holder)
    if review.labels.get(FORCE) == "true":
        return
    taken: Amounts = {}
    others = [item for item in children_of(review.world, holder.name) if item.key != review.key]
    for other in others:
        taken = add(taken, _minimum(other.spec))
    limit = _minimum(holder.spec)
    left = {name: amount for name, amount in subtract(limit, taken).items() if name in limit}
    own = {name: amount for name, amount in _minimum(review.spec).items() if amount > 0}
    listed = ", ".join(other.name for other in others) or "no others"
    yield from at_most("spec.min", own, left, f"what the min of the parent {holder.name} leaves besides {listed}")


def _check_tree_kept(review: Review, holder: Object | None) -> Iterable[FieldError]:
    """A quota stays in its tree, whether it names it or has that of its parent."""
    if review.old is None:
        return
    parents = holder.labels.get(TREE, "") if holder is not None else ""
    before, after = (labels.get(TREE, parents) for labels in (review.old.labels, review.labels))
    if before != after:
        yield FieldError(f'metadata.labels["{TREE}"]', after, f"the tree may not change (it is {before or 'none'})")


def _same_resources(spec: Manifest, holder: Object) -> Iterable[FieldError]:
    """A quota and its parent speak of the same resources: what one of them left out would be unlimited there."""
    own, above = set(spec.get("max") or {}), set(holder.spec.get("max") or {})
    for name in sorted(own ^ above):
        rule = (
            f"{name} is in the max of {'the quota' if name in own else holder.name} alone; give it to both or to none"
        )
        yield FieldError(entry("spec.max", name), (spec.get("max") or {}).get(name), rule)


def _check_is_parent(review: Review) -> Iterable[FieldError]:
    if review.old is None:
        return
    name, where = review.key.name, f'metadata.labels["{IS_PARENT}"]'
    before, after = (labels.get(IS_PARENT) == "true" for labels in (review.old.labels, review.labels))
    if before and not after and children_of(review.world, name):
        yield FieldError(where, "false", f"quota {name} has child quotas; move them first")
    if after and not before and pods_of(review.world, name):
        yield FieldError(where, "true", f"quota {name} has pods; a parent has none of its own")


def _check_children(review: Review) -> Iterable[FieldError]:
    if review.old is None or review.labels.get(FORCE) == "true":
        return
    total: Amounts = {}
    for child in children_of(review.world, review.key.name):
        total = add(total, _minimum(child.spec))
    own = _minimum(review.spec)
    for name in sorted(own):
        if name in total and total[name] > own[name]:
            given, all_of_them = (format_amount(name, amounts[name]) for amounts in (own, total))
            rule = f"the children of {review.key.name} have a min of {all_of_them} in all; lower theirs first"
            yield FieldError(entry("spec.min", name), given, rule)


def check_quota_delete(old: Object, world: World) -> Iterable[FieldError]:
    """The built-in quotas stay, and so does one with children or with pods in it."""
    if old.name in BUILT_IN:
        yield FieldError("metadata.name", old.name, f"quota {old.name} always exists and cannot be deleted")
    children, pods = children_of(world, old.name), pods_of(world, old.name)
    if children:
        listed = ", ".join(child.name for child in children[:3])
        yield FieldError("metadata.name", old.name, f"quota {old.name} has child quotas ({listed}); delete them first")
    if pods:
        first = pods[0]
        rule = f"quota {old.name} has {counted(len(pods), 'pod')} in it ({first.namespace}/{first.name} is one); delete them first"
        yield FieldError("metadata.name", old.name, rule)


def _minimum(spec: Manifest) -> Amounts:
    return sound_amounts(spec.get("min"))
