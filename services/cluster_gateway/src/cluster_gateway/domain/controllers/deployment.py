"""Deployment: replicas of the newest template, replacing those of older ones step by step."""

from dataclasses import dataclass

from cluster_gateway.domain.controllers.deployment_status import report
from cluster_gateway.domain.controllers.made_pods import is_active
from cluster_gateway.domain.controllers.replica_set import REPLICA_SET
from cluster_gateway.domain.controllers.templates import POD_TEMPLATE_HASH, template_hash
from cluster_gateway.domain.controllers.work import Work, controls, share_of, whole
from kube import Manifest, Object
from kube.last_applied import LAST_APPLIED
from kube.owners import owner_reference

REVISION = "deployment.kubernetes.io/revision"
_HISTORY = 10
_OWN = (REVISION, LAST_APPLIED)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A Deployment and its ReplicaSets: the one of the newest template (None before it is made) and the older ones."""

    item: Object
    newest: Object | None
    older: list[Object]

    @property
    def replicas(self) -> int:
        return whole(self.item.spec.get("replicas"), 1)

    @property
    def strategy(self) -> Manifest:
        return self.item.spec.get("strategy") or {}

    @property
    def max_surge(self) -> int:
        return share_of((self.strategy.get("rollingUpdate") or {}).get("maxSurge", "25%"), self.replicas, up=True)

    @property
    def max_unavailable(self) -> int:
        """At least one where there is no surge: an update has to move somewhere."""
        given = (self.strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%")
        count = min(share_of(given, self.replicas, up=False), self.replicas)
        return count or (0 if self.max_surge else 1)


def reconcile_deployment(item: Object, work: Work) -> None:
    """One step towards the newest template, and the status."""
    if item.deleting:
        return
    rollout = _read(item, work)
    if rollout.newest is None and not item.spec.get("paused"):
        _make_newest(rollout, work)
    elif rollout.strategy.get("type") == "Recreate":
        _recreate(rollout, work)
    else:
        _roll(rollout, work)
    report(item, rollout.newest, rollout.older, rollout.replicas, rollout.max_unavailable, work)
    _forget_old(rollout, work)


def _read(item: Object, work: Work) -> Rollout:
    owned = [found for found in work.store.owned_by(item.uid) if found.kind == REPLICA_SET and not found.deleting]
    sets = sorted(
        (found for found in owned if controls(item, found)), key=lambda found: (revision_of(found), found.key)
    )
    hashed = template_hash(item.spec.get("template") or {})
    newest = next((found for found in sets if found.labels.get(POD_TEMPLATE_HASH) == hashed), None)
    return Rollout(item, newest, [found for found in sets if found is not newest])


def revision_of(item: Object) -> int:
    """The number of the update that made the ReplicaSet ``item``, or turned back to it."""
    text = item.annotations.get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def replicas_of(item: Object) -> int:
    """How many pods the ReplicaSet ``item`` should have."""
    return whole(item.spec.get("replicas"), 1)


def _next_revision(rollout: Rollout) -> str:
    return str(max((revision_of(found) for found in rollout.older), default=0) + 1)


def _make_newest(rollout: Rollout, work: Work) -> None:
    item = rollout.item
    template = item.spec.get("template") or {}
    hashed = template_hash(template)
    mark = {POD_TEMPLATE_HASH: hashed}
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **mark}
    selector = item.spec.get("selector") or {}
    recreate = rollout.strategy.get("type") == "Recreate"
    spec: Manifest = {
        "replicas": 0 if recreate and _any_left(rollout, work) else _room_for_new(rollout, 0),
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **mark}},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    if "minReadySeconds" in item.spec:
        spec["minReadySeconds"] = item.spec["minReadySeconds"]
    work.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{item.name}-{hashed}",
                "namespace": item.namespace,
                "labels": labels,
                "annotations": {**_handed_on(item), REVISION: _next_revision(rollout)},
                "ownerReferences": [owner_reference(item)],
            },
            "spec": spec,
        }
    )


def _handed_on(item: Object) -> dict[str, str]:
    """The annotations that a ReplicaSet takes over from its Deployment."""
    return {name: text for name, text in item.annotations.items() if name not in _OWN}


def _scale(found: Object, replicas: int, work: Work) -> None:
    if replicas_of(found) != replicas:
        work.patch(found, {"spec": {"replicas": replicas}})


def _turn_back(rollout: Rollout, work: Work) -> None:
    """A template of earlier is the newest again: its set gets the next number."""
    if rollout.newest is not None and revision_of(rollout.newest) < int(_next_revision(rollout)) - 1:
        work.patch(rollout.newest, {"metadata": {"annotations": {REVISION: _next_revision(rollout)}}})


def _recreate(rollout: Rollout, work: Work) -> None:
    """First all old pods go, then the new ones come."""
    _turn_back(rollout, work)
    for found in rollout.older:
        _scale(found, 0, work)
    if rollout.newest is not None and not _any_left(rollout, work):
        _scale(rollout.newest, rollout.replicas, work)


def _any_left(rollout: Rollout, work: Work) -> bool:
    """Whether a pod of an older template still exists, be it on its way out."""
    return any(pod.deleting or is_active(pod) for found in rollout.older for pod in work.pods_of(found))


def _room_for_new(rollout: Rollout, now: int) -> int:
    """How many pods the newest set, having ``now``, may have: all together at most the replicas and the surge."""
    total = now + sum(replicas_of(found) for found in rollout.older)
    return min(rollout.replicas, now + max(0, rollout.replicas + rollout.max_surge - total))


def _roll(rollout: Rollout, work: Work) -> None:
    """New ones up to the surge; old ones down as far as enough stay available, those that do not work first."""
    newest = rollout.newest
    if newest is None or (rollout.item.spec.get("paused") and any(map(replicas_of, rollout.older))):
        return
    _turn_back(rollout, work)
    wanted = replicas_of(newest)
    if wanted > rollout.replicas:
        _scale(newest, rollout.replicas, work)
        return
    if (grown := _room_for_new(rollout, wanted)) != wanted:
        _scale(newest, grown, work)
        return
    _shrink_older(rollout, newest, work)


def _shrink_older(rollout: Rollout, newest: Object, work: Work) -> None:
    older = [found for found in rollout.older if replicas_of(found)]
    total = replicas_of(newest) + sum(map(replicas_of, older))
    least = rollout.replicas - rollout.max_unavailable
    spare = total - least - max(0, replicas_of(newest) - _available(newest))
    left = {found.key: replicas_of(found) for found in older}
    for found in older:
        gone = max(0, min(left[found.key] - _available(found), spare))
        left[found.key] -= gone
        spare -= gone
    budget = min(spare, _available(newest) + sum(map(_available, older)) - least)
    for found in older:
        gone = max(0, min(left[found.key], budget))
        left[found.key] -= gone
        budget -= gone
        _scale(found, left[found.key], work)


def _available(found: Object) -> int:
    """How many available pods the set has that it will keep: what is above its replicas is going already."""
    return min(whole(found.status.get("availableReplicas"), 0), replicas_of(found))


def _forget_old(rollout: Rollout, work: Work) -> None:
    limit = whole(rollout.item.spec.get("revisionHistoryLimit"), _HISTORY)
    empty = [found for found in rollout.older if not replicas_of(found) and not found.status.get("replicas")]
    for found in empty[: max(0, len(empty) - limit)]:
        work.delete(found)
