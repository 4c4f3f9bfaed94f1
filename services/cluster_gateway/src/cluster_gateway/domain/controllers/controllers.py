"""All built-in controllers together: which objects have to be looked at again, and what that comes to."""

import heapq
from collections.abc import Callable, Sequence

from cluster_gateway.domain.claim_use import CLAIM as DEVICE_CLAIM
from cluster_gateway.domain.controllers.cron_job import CRON_JOB, reconcile_cron_job
from cluster_gateway.domain.controllers.daemon_set import DAEMON_SET, reconcile_daemon_set
from cluster_gateway.domain.controllers.deployment import reconcile_deployment
from cluster_gateway.domain.controllers.disruption_budget import BUDGET, BudgetMembers, reconcile_budget
from cluster_gateway.domain.controllers.job import JOB, reconcile_job
from cluster_gateway.domain.controllers.namespace_end import NAMESPACE, reconcile_namespace
from cluster_gateway.domain.controllers.replica_set import DEPLOYMENT, REPLICA_SET, reconcile_replica_set
from cluster_gateway.domain.controllers.resource_claim import (
    POD,
    TEMPLATE,
    from_template,
    reconcile_claims,
    reconcile_used_claim,
)
from cluster_gateway.domain.controllers.resource_quota import QuotaUse, reconcile_quota
from cluster_gateway.domain.controllers.runtime_class import reconcile_runtime_class
from cluster_gateway.domain.controllers.stateful_set import STATEFUL_SET, reconcile_stateful_set
from cluster_gateway.domain.controllers.taint_eviction import NODE, drives_away, reconcile_taints
from cluster_gateway.domain.controllers.volume_claim import reconcile_claim, reconcile_volume, unbound
from cluster_gateway.domain.controllers.work import Names, Work
from kube import Event, Key, Manifest, Mutation, Object, Store, kind_id, runs
from kube.pods import has_condition, is_finished
from kube.resource_quotas import RESOURCE_QUOTA
from kube.runtime_classes import RUNTIME_CLASS, class_name
from kube.volumes import CLAIM, STORAGE_CLASS, VOLUME, claims_of

_RANK = {
    kind: rank
    for rank, kind in enumerate(
        (
            *(NAMESPACE, CRON_JOB, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB, BUDGET),
            *(CLAIM, VOLUME, POD, RESOURCE_QUOTA, NODE, DEVICE_CLAIM),
        )
    )
}


class Controllers:
    """Reacts to what happens in the cluster: fold() marks what is concerned, act() says what has to change.

    act() is called again and again, what it wants being done and folded in between, until it wants nothing. All state
    but the marks is in the store; the sums of a Job are in its status, written in the change set in which its pods finish.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names = Names(store)
        self._members = BudgetMembers(store)
        self._quotas = QuotaUse(store)
        self._finished: dict[str, list[Object]] = {}
        self._ending: set[str] = set()
        self._driving: set[str] = set()
        self._on_driving: dict[str, list[Object]] = {}
        self._dirty: dict[Key, None] = {}
        self._taken: set[str] = set()
        self._due: list[tuple[int, Key]] = []
        self._planned: dict[Key, int] = {}
        self._failed: dict[Key, str] = {}
        self._news: dict[Key, str] = {}
        self._reconcile: dict[str, Callable[[Object, Work], None]] = {
            NAMESPACE: reconcile_namespace,
            CRON_JOB: reconcile_cron_job,
            DEPLOYMENT: reconcile_deployment,
            REPLICA_SET: reconcile_replica_set,
            STATEFUL_SET: reconcile_stateful_set,
            DAEMON_SET: reconcile_daemon_set,
            JOB: lambda job, work: reconcile_job(job, self._finished.pop(job.uid, ()), work),
            POD: _reconcile_pod,
            BUDGET: lambda budget, work: reconcile_budget(budget, self._members.of(budget.key), work),
            CLAIM: lambda claim, work: reconcile_claim(claim, self._taken, work),
            VOLUME: reconcile_volume,
            RESOURCE_QUOTA: lambda quota, work: reconcile_quota(quota, self._quotas.of(quota.key), work),
            DEVICE_CLAIM: reconcile_used_claim,
            NODE: lambda node, work: reconcile_taints(node, self._on_driving.get(node.name, ()), work),
        }

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Mark what ``events`` concern. The store has them already."""
        for run in runs(events):
            kind, namespace, _ = run[0].key
            if kind == "Pod":
                self._fold_pods(run)
            elif kind == NODE:
                self._fold_nodes(run)
            elif kind in _RANK:
                for event in run:
                    self._fold_own(event)
            elif kind == TEMPLATE:
                self._mark_claimants(namespace)
            elif kind == RUNTIME_CLASS:
                for event in run:
                    self._mark_of_class(event.key.name)
            elif kind == STORAGE_CLASS:
                self._mark_claims()
            if self._quotas.has_quotas(namespace):
                for event in run:
                    self._dirty.update(dict.fromkeys(self._quotas.fold(event)))
            if namespace in self._ending:
                self._dirty[Key(NAMESPACE, "", namespace)] = None

    def act(self, now: int) -> list[Mutation]:
        """What should change now."""
        self._wake(now)
        if not self._dirty:
            return []
        dirty, self._dirty = self._dirty, {}
        self._taken.clear()
        self._find_pods({key.name for key in dirty if key.kind == NODE})
        mutations: list[Mutation] = []
        for key in sorted(dirty, key=lambda key: (_RANK[key.kind], key)):
            item = self._store.get(key)
            self._planned.pop(key, None)
            if item is None:
                continue
            work = self._look_at(item, now)
            mutations += work.mutations
            if work.due is not None:
                self._planned[key] = work.due
                heapq.heappush(self._due, (work.due, key))
        return mutations

    def take_failures(self) -> dict[Key, str]:
        """The objects that a controller could not make sense of since the last call, each with the error."""
        news, self._news = self._news, {}
        return news

    def _look_at(self, item: Object, now: int) -> Work:
        """What one object comes to. One of no sense must not stop the cluster for all: it gets its next chance when it changes."""
        work = Work(self._store, self._names, now)
        try:
            self._reconcile[item.kind](item, work)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if self._failed.get(item.key) != text:
                self._failed[item.key] = self._news[item.key] = text
            return Work(self._store, self._names, now)
        self._failed.pop(item.key, None)
        return work

    def deadline(self) -> int | None:
        """When act() has to be called although nothing happens; None for never."""
        while self._due and self._planned.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _wake(self, now: int) -> None:
        while (at := self.deadline()) is not None and at <= now:
            _, key = heapq.heappop(self._due)
            del self._planned[key]
            self._dirty[key] = None

    def _fold_own(self, event: Event) -> None:
        key = event.key
        self._dirty[key] = None
        if key.kind == BUDGET:
            self._members.fold_budget(event)
        elif key.kind == RESOURCE_QUOTA:
            self._quotas.fold_quota(event)
        elif key.kind == NAMESPACE:
            self._fold_namespace(event)
        elif key.kind == VOLUME:
            self._fold_volume(event)
        elif key.kind == CLAIM:
            self._dirty.update(_volume_of(event.object))
        if event.new is None:
            self._names.forget(event.object.uid)
            self._finished.pop(event.object.uid, None)
            self._failed.pop(key, None)
        self._mark_owners(event)

    def _fold_namespace(self, event: Event) -> None:
        if event.new is not None and event.new.deleting:
            self._ending.add(event.key.name)
        else:
            self._ending.discard(event.key.name)

    def _fold_volume(self, event: Event) -> None:
        """A claim may get the volume, or has lost it."""
        owner = event.object.spec.get("claimRef") or {}
        if owner:
            self._dirty[Key(CLAIM, str(owner.get("namespace") or ""), str(owner.get("name") or ""))] = None
        else:
            self._mark_claims()

    def _mark_claims(self) -> None:
        self._dirty.update((key, None) for key, claim in self._store.of_kind(CLAIM).items() if unbound(claim))

    def _fold_nodes(self, run: Sequence[Event]) -> None:
        """Daemons may come and go, and pods may have to leave."""
        if _matters(run[0]):
            self._dirty.update(dict.fromkeys(self._store.of_kind(DAEMON_SET)))
        for event in run:
            name, new = event.key.name, event.new
            if new is not None and drives_away(new):
                self._driving.add(name)
                self._dirty[event.key] = None
            elif name in self._driving:
                self._driving.discard(name)

    def _find_pods(self, nodes: set[str]) -> None:
        """Take down who is on ``nodes``: a pass over all pods, for once that one has to leave."""
        self._on_driving = {}
        for _, pod in sorted(self._store.of_kind(POD).items()) if nodes else ():
            if (name := pod.spec.get("nodeName")) in nodes:
                self._on_driving.setdefault(name, []).append(pod)

    def _fold_pods(self, run: Sequence[Event]) -> None:
        """What pods that change alike concern."""
        first = run[0]
        pod = first.object
        if self._driving and first.new is not None and (first.old is None or first.old.body is not first.new.body):
            nodes = {str(event.object.spec.get("nodeName")) for event in run} & self._driving
            self._dirty.update((Key(NODE, "", name), None) for name in nodes)
        if self._members.has_budgets(first.key.namespace):
            for event in run:
                self._dirty.update(dict.fromkeys(self._members.fold_pod(event)))
        self._mark_owners(first)
        if "volumes" in pod.spec and _comes_or_goes(first):
            self._dirty.update(dict.fromkeys(claims_of(pod.spec, pod.namespace)))
        if pod.metadata.get("ownerReferences"):
            for event in run:
                self._note_end(event)
        if first.new is not None and pod.spec.get("resourceClaims"):
            self._dirty.update((event.key, None) for event in run if from_template(event.object))

    def _mark_claimants(self, namespace: str) -> None:
        """A template is there now: the pods that ask for claims of it may get them."""
        for pod in self._store.in_namespace(POD, namespace):
            if pod.spec.get("resourceClaims") and from_template(pod):
                self._dirty[pod.key] = None

    def _mark_of_class(self, name: str) -> None:
        """A RuntimeClass is there now: pods that came before it get what it adds."""
        for key, pod in self._store.of_kind(POD).items():
            if class_name(pod.spec) == name and not pod.spec.get("nodeName"):
                self._dirty[key] = None

    def _note_end(self, event: Event) -> None:
        """Note a pod of a Job that has just finished, or was disrupted and is gone."""
        if event.old is None or is_finished(event.old):
            return
        pod = event.object
        owner = _owner_key(pod, pod.controller)
        if owner is None or owner.kind != JOB:
            return
        if is_finished(pod) or (event.new is None and has_condition(pod.status, "DisruptionTarget")):
            self._finished.setdefault(str((pod.controller or {}).get("uid")), []).append(pod)

    def _mark_owners(self, event: Event) -> None:
        for item in (event.old, event.new):
            if item is None or not item.metadata.get("ownerReferences"):
                continue
            owner = _owner_key(item, item.controller)
            if owner is None or owner.kind not in _RANK or owner.kind == POD:
                continue
            self._dirty[owner] = None
            if owner.kind == DEPLOYMENT and item.kind == "Pod":
                self._mark_sets(owner)

    def _mark_sets(self, deployment: Key) -> None:
        """A pod names the Deployment itself: one of its ReplicaSets takes it in."""
        found = self._store.get(deployment)
        for item in self._store.owned_by(found.uid) if found else ():
            if item.kind == REPLICA_SET:
                self._dirty[item.key] = None


def _reconcile_pod(pod: Object, work: Work) -> None:
    reconcile_runtime_class(pod, work)
    reconcile_claims(pod, work)


def _volume_of(claim: Object) -> dict[Key, None]:
    """The volume that a claim is bound to. A claim of no sense has none: it must not stop the cluster for all."""
    name = claim.spec.get("volumeName") if isinstance(claim.spec, dict) else None
    return {Key(VOLUME, "", name): None} if name and isinstance(name, str) else {}


def _comes_or_goes(pod: Event) -> bool:
    """Whether the pod got its node, or has ended."""
    old, new = pod.old, pod.new
    if old is None or new is None or is_finished(new):
        return True
    return bool(old.spec.get("nodeName") != new.spec.get("nodeName"))


def _matters(node: Event) -> bool:
    """Whether the node may be right for other pods now: most changes are of its status."""
    old, new = node.old, node.new
    return old is None or new is None or (old.labels, old.spec, old.deleting) != (new.labels, new.spec, new.deleting)


def _owner_key(item: Object, controller: Manifest | None) -> Key | None:
    if controller is None:
        return None
    kind = kind_id(str(controller.get("apiVersion") or ""), str(controller.get("kind") or ""))
    return Key(kind, item.namespace, str(controller.get("name") or ""))
