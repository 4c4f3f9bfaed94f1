"""The objects of a cluster that keeps them itself, and the elementary things that can happen to one.

Everything that happens is noted twice: in the draft of the next change set, and as events for those who react to it
inside the cluster (built-in controllers, simulated nodes, assignments).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from cluster_gateway.domain.claim_use import CLAIM, is_used
from cluster_gateway.domain.draft import Draft
from kube import Event, Events, Key, Manifest, Object, Store, are_alike, merge, rfc3339
from kube.bindings import BoundBodies, template_of
from kube.lent_resources import LENT
from kube.runtime_classes import completed

DEFAULT_GRACE_SECONDS = 30
MOST_GRACE_SECONDS = (1 << 31) - 1
"""More would be no date."""
ENDED = ("Succeeded", "Failed")
"""The phases of a pod that has come to its end."""


@dataclass(slots=True)
class Cluster:
    """``revision`` is that of the change set being gathered, ``now`` the time of what happens (ms since the epoch)."""

    new_uid: Callable[[], str]
    store: Store = field(default_factory=Store)
    draft: Draft = field(default_factory=Draft)
    revision: int = 0
    now: int = 0
    actor: str = ""
    events: Events = field(default_factory=Events)
    node_revisions: dict[str, int] = field(default_factory=dict)
    """By node: the revision of the last change that can make a placement on it wrong."""
    lent_revisions: dict[str, int] = field(default_factory=dict)
    """By node: that of the last change of nothing but what it lends. It makes those wrong alone that live on that."""
    authors: dict[Key, str] = field(default_factory=dict)
    """Who changed more than the status of an object last, where that is known."""
    _merged: dict[tuple[int, int], tuple[Manifest, Manifest, Manifest]] = field(default_factory=dict)

    seal: Callable[["Cluster", int], None] = lambda cluster, first: None
    """Called with the place of the first of the events that happen as a whole, when they have happened."""

    _bodies: BoundBodies = field(default_factory=BoundBodies)
    _stamped: dict[int, tuple[Manifest, Manifest]] = field(default_factory=dict)
    _completed: dict[int, tuple[Manifest, Manifest]] = field(default_factory=dict)
    _scheduled: tuple[str, Manifest] = ("", {})

    def _scheduled_now(self) -> Manifest:
        """The status patch of a pod that gets its node now: one object for all that are bound at one time."""
        at = rfc3339(self.now)
        if self._scheduled[0] != at:
            condition = {"type": "PodScheduled", "status": "True", "reason": "Bound", "lastTransitionTime": at}
            self._scheduled = (at, {"conditions": [condition]})
        return self._scheduled[1]

    def take_events(self) -> Events:
        """What happened since the last call."""
        events, self.events = self.events, Events()
        self._merged.clear()
        self._bodies.clear()
        self._stamped.clear()
        self._completed.clear()
        return events

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What is done in here happens whole: where it fails, or ``seal`` does, all of it is taken back."""
        events, edits = len(self.events), self.draft.mark()
        try:
            yield
            self.seal(self, events)
        except Exception:
            for event in reversed(self.events.undo(events)):
                undone = self.store.remove(event.key) if event.old is None else self.store.put(event.old)
                if event.key.kind == "Node" and undone is not None:
                    self._note_node(undone)
            self.draft.undo(edits)
            raise
        self.draft.keep()

    def create(self, key: Key, metadata: Manifest, body: Manifest, status: Manifest) -> Object:
        """Store a new object; it gets its uid and creation time here."""
        return self.create_all((key,), metadata, body, status)[0]

    def create_all(self, keys: Sequence[Key], metadata: Manifest, body: Manifest, status: Manifest) -> Sequence[Object]:
        """Store new objects of one kind and namespace that are alike."""
        self._ensure_namespace(keys[0])
        if keys[0].kind == "Pod":
            body = self._with_runtime_class(body)
        stamped, new_uid, revision = self._stamp(metadata), self.new_uid, self.revision
        items = [Object(key, new_uid(), stamped, body, status, revision, revision) for key in keys]
        self._note_all(self.store.put_all(keys[0].kind, items), alike=True)
        if keys[0].kind == "Pod" and (node := items[0].spec.get("nodeName")):
            # Room on the node was taken without the scheduler: what it decided before does not hold there any more.
            self.node_revisions[node] = revision
        self.draft.created(items, self.actor)
        return items

    def _stamp(self, metadata: Manifest) -> Manifest:
        """The metadata with what every new object has; those that share it go on sharing."""
        memo = self._stamped.get(id(metadata))
        if memo is None:
            stamped = {"creationTimestamp": rfc3339(self.now), "generation": 1, **metadata}
            memo = self._stamped[id(metadata)] = (stamped, metadata)
        return memo[0]

    def _with_runtime_class(self, body: Manifest) -> Manifest:
        """The body of a pod with what its RuntimeClass adds; pods that share a body go on sharing. An objection is told later."""
        spec = body.get("spec") or {}
        if "runtimeClassName" not in spec:
            return body
        memo = self._completed.get(id(body))
        if memo is None:
            complete = completed(spec, self.store.get)
            memo = self._completed[id(body)] = ({**body, "spec": complete} if complete is not spec else body, body)
        return memo[0]

    def replace(self, old: Object, metadata: Manifest, body: Manifest) -> Object:
        """Store a new version of what a user wrote; the generation counts changes of the body."""
        if (metadata == old.metadata and body == old.body) or self.store.get(old.key) is None:
            return old
        if body != old.body:
            metadata = {**metadata, "generation": int(old.metadata.get("generation", 0)) + 1}
        new = old.changed(metadata=metadata, body=body, revision=self.revision, spec_revision=self.revision)
        self._note(self.store.put(new))
        self.draft.changed(new, self.actor, metadata=True, body=body != old.body)
        return new if not self._finalized(new) else self._gone(new)

    def observed(self, new: Object, actor: str) -> None:
        """Take in an object that somebody else keeps, as it is now. Parts that it shares with what was known are no edits."""
        self.actor = actor
        event = self.store.put(new)
        self._note(event)
        old = event.old
        if old is None:
            self.draft.created((new,), actor)
        elif new.body is not old.body and template_of(new.body) is old.body:
            self.draft.bound(((old, str(new.spec["nodeName"]), new.metadata),), (new,), actor)
        else:
            self.draft.changed(
                new,
                actor,
                metadata=new.metadata is not old.metadata,
                body=new.body is not old.body,
                status=new.status is not old.status,
            )

    def vanished(self, item: Object, actor: str) -> None:
        """Forget an object that somebody else kept and has no more; what it owned is told of by itself."""
        gone = self.store.remove(item.key)
        if gone is not None:
            self._note(gone)
            self.draft.removed(item, actor)

    def on_node(self, body: Manifest, node: str) -> Manifest:
        """A pod's body with its node; pods of one ``body`` and node in one change set share it."""
        return self._bodies.on(body, node)

    def set_status(self, old: Object, patch: Manifest) -> Object:
        """Lay a merge patch over the status. Objects that share a status and get the same patch share the result."""
        status = self._patched(old.status, patch)
        if status is old.status or self.store.get(old.key) is None:
            return old
        new = Object(old.key, old.uid, old.metadata, old.body, status, self.revision, old.spec_revision)
        self._note(self.store.put(new))
        self.draft.changed(new, self.actor, status=True)
        return new

    def set_statuses(self, pods: Sequence[Object], patch: Manifest, actors: Iterable[str]) -> None:
        """``set_status`` for pods that are there and that it changes; each was asked for by the actor in its place."""
        patched, revision = self._patched, self.revision
        versions = [
            Object(old.key, old.uid, old.metadata, old.body, patched(old.status, patch), revision, old.spec_revision)
            for old in pods
        ]
        self.events.add_alike(pods, self.store.put_all("Pod", versions))
        self.draft.statuses(versions, actors)

    def _patched(self, status: Manifest, patch: Manifest) -> Manifest:
        memo = self._merged.get((id(status), id(patch)))
        if memo is None:
            merged = merge(status, patch)
            memo = self._merged[id(status), id(patch)] = (status if merged == status else merged, status, patch)
        return memo[0]

    def bind(self, bindings: Sequence[tuple[Object, str, Manifest]]) -> Sequence[Object]:
        """Give pods their nodes, and tell so in their statuses; each has its own metadata, with what the binding adds.

        Pods of one template that are bound to one node together share their body.
        """
        on, patched, now, revision = self._bodies.on, self._patched, self._scheduled_now(), self.revision
        pods = [pod for pod, _, _ in bindings]
        versions = [
            Object(pod.key, pod.uid, metadata, on(pod.body, node), patched(pod.status, now), revision, revision)
            for pod, node, metadata in bindings
        ]
        self._note_all(self.store.put_all("Pod", versions), alike=are_alike(pods) and are_alike(versions))
        self.draft.bound(bindings, versions, self.actor)
        return versions

    def delete(self, item: Object, grace_seconds: int | None = None) -> None:
        """Delete an object and what it owns; one that has to end first is only marked."""
        in_use = (item.kind == "Pod" and self._runs(item)) or (item.kind == CLAIM and is_used(item, self.store))
        if item.metadata.get("finalizers") or in_use:
            if item.deleting and grace_seconds is None:
                return
            self._mark_deleted(item, grace_seconds)
        elif item.kind == "Namespace" and any(key.namespace == item.name for key in self.store.objects):
            if not item.deleting:
                self._mark_deleted(item, 0)
        else:
            self._gone(item)

    def gone(self, item: Object) -> None:
        """The object has ended: it is no more, or finished if somebody still holds it by a finalizer."""
        if not item.metadata.get("finalizers"):
            self._gone(item)
        elif item.status.get("phase") not in ENDED:
            self.set_status(item, {"phase": "Failed", "reason": "Deleted"})

    def _gone(self, item: Object) -> Object:
        gone = self.store.remove(item.key)
        if gone is not None:
            self._note(gone)
            self.draft.removed(item, self.actor)
            for key in [child.key for child in self.store.owned_by(item.uid)]:
                child = self.store.get(key)
                if child is not None and not self._has_other_owner(child, item.uid):
                    self.delete(child)
        return item

    def _mark_deleted(self, item: Object, grace_seconds: int | None) -> None:
        grace = grace_seconds
        if grace is None:
            given = item.spec.get("terminationGracePeriodSeconds")
            grace = given if isinstance(given, int) and given >= 0 else DEFAULT_GRACE_SECONDS
        grace = min(grace, MOST_GRACE_SECONDS)
        marked = {
            **item.metadata,
            "deletionTimestamp": rfc3339(self.now + grace * 1000),
            "deletionGracePeriodSeconds": grace,
        }
        new = item.changed(metadata=marked, revision=self.revision, spec_revision=self.revision)
        self._note(self.store.put(new))
        self.draft.changed(new, self.actor, metadata=True)

    def _runs(self, pod: Object) -> bool:
        """Whether a node has to end the pod before it can be gone."""
        node = pod.spec.get("nodeName")
        if not node or pod.status.get("phase") in ENDED:
            return False
        return self.store.get(Key("Node", "", node)) is not None

    def _has_other_owner(self, child: Object, uid: str) -> bool:
        owners = [owner.get("uid") for owner in child.metadata.get("ownerReferences") or ()]
        return any(item.uid in owners for item in map(self._by_reference(child), owners) if item and item.uid != uid)

    def _by_reference(self, child: Object) -> Callable[[str], Object | None]:
        from kube import kind_id

        by_uid: dict[str, Object] = {}
        for owner in child.metadata.get("ownerReferences") or ():
            kind = kind_id(str(owner.get("apiVersion") or ""), str(owner.get("kind") or ""))
            for namespace in (child.namespace, ""):
                found = self.store.get(Key(kind, namespace, str(owner.get("name"))))
                if found is not None and found.uid == owner.get("uid"):
                    by_uid[found.uid] = found
        return by_uid.get

    def _finalized(self, item: Object) -> bool:
        """Whether nothing holds a deleted object any more. A namespace goes when it is found to be empty."""
        if not item.deleting or item.metadata.get("finalizers") or item.kind == "Namespace":
            return False
        return item.kind != "Pod" or not self._runs(item)

    def _ensure_namespace(self, key: Key) -> None:
        if key.namespace and self.store.get(Key("Namespace", "", key.namespace)) is None:
            self.create(Key("Namespace", "", key.namespace), {}, {}, {"phase": "Active"})

    def _note(self, event: Event) -> None:
        self.events.add(event)
        if event.new is None:
            self.authors.pop(event.key, None)
        elif event.old is None or event.new.spec_revision != event.old.spec_revision:
            self.authors[event.key] = self.actor
        if event.key.kind == "Node":
            self._note_node(event)

    def _note_all(self, events: Sequence[Event], *, alike: bool) -> None:
        """Objects of one kind came, or changed in more than their status; ``alike`` where they are one run."""
        (self.events.add_run if alike else self.events.add_all)(events)
        self.authors.update((event.key, self.actor) for event in events)
        if events[0].key.kind == "Node":
            for event in events:
                self._note_node(event)

    def _note_node(self, event: Event) -> None:
        name = event.key.name
        if event.new is None:
            self.node_revisions.pop(name, None)
            self.lent_revisions.pop(name, None)
        elif event.old is None or matters_to_placement(event.old) != matters_to_placement(event.new):
            self.node_revisions[name] = self.revision
        elif _lent(event.old) != _lent(event.new):
            self.lent_revisions[name] = self.revision


def _lent(node: Object) -> Manifest:
    allocatable = node.status.get("allocatable") or {}
    return {name: allocatable[name] for name in LENT if name in allocatable}


def matters_to_placement(node: Object) -> tuple[object, ...]:
    """What of a node every placement rests on."""
    ready = next((c.get("status") for c in node.status.get("conditions") or () if c.get("type") == "Ready"), None)
    allocatable = {name: part for name, part in (node.status.get("allocatable") or {}).items() if name not in LENT}
    return (node.uid, node.labels, node.spec, allocatable, ready, node.deleting)
