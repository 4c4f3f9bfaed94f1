"""The objects of a cluster whose objects somebody else keeps: what was seen of them, folded to edits of the next change set.

Two sources tell of one object: the watch of its kind, and the answers to our own requests, which come before or after. Versions
say which is newer. A binding that was done is laid over at once, for its answer holds no object; what the watch tells later from
before it changes nothing of that. What is gone is remembered by its uid for a while, so that an answer which is late does not
bring it back.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import orjson

from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.hidden import HIDDEN, without_copy
from cluster_gateway.domain.kubelet_rules import KubeletRules
from cluster_gateway.domain.node_objects import METRIC
from cluster_gateway.domain.pod_uids import PodUids
from kube import Edit, Event, Events, Key, Manifest, Object, Store
from kube.bindings import without_node
from kube.objects import body_of

DROPPED_METADATA = frozenset(("name", "namespace", "uid", "resourceVersion", "managedFields", "selfLink"))
MOST_SHARED = 4096
MOST_GONE = 50_000
"""So many uids of what is gone are remembered: what comes late comes within seconds."""
OTHERS = "somebody"


def _never() -> str:
    raise AssertionError("objects of an API server bring their uids")


class Mirror:
    """``cluster`` holds the objects as facts tell them; ``versions`` the server's version of each as it was seen last.

    ``pods`` finds pods by uid, and ``rules`` what is told to the agents of nodes, as far as change sets were taken.
    """

    def __init__(self, loaded: Store) -> None:
        self.cluster = Cluster(_never, loaded)
        self.versions: dict[Key, int] = {}
        self.pods = PodUids()
        self.rules = KubeletRules(loaded)
        self._index(loaded)
        self._shared: dict[bytes, Manifest] = {}
        self._gone: dict[str, None] = {}
        self._being_bound: dict[str, str] = {}

    @property
    def store(self) -> Store:
        return self.cluster.store

    @property
    def edits(self) -> int:
        """How many edits the change set that is being gathered has."""
        return len(self.cluster.draft.edits)

    def begin(self, now: int, revision: int) -> None:
        """The next change set: ``revision`` is the sequence that it will have."""
        self.cluster.now, self.cluster.revision = now, revision

    def take(self) -> Sequence[Edit]:
        """The edits of the change set; the next one begins."""
        events = self.cluster.take_events()
        self.pods.fold(events)
        self.rules.fold(events)
        return self.cluster.draft.take()

    def listed(self, kind: str, there: AbstractSet[Key], version: int) -> None:
        """All objects of a kind as of ``version`` were seen: what is not among them is gone, unless it was seen later."""
        for key in [key for key in self.store.of_kind(kind) if key not in there]:
            if self.versions.get(key, 0) <= version:
                self._forget(key)

    def began_anew(self, kind: str) -> None:
        """The server's versions went back: it was given an older state. What is known of the kind is not newer than that.

        Pods that were bound since are not bound any more, so all of them are told as gone, and what is there as new.
        """
        self._gone.clear()
        for key in self.store.of_kind(kind):
            self.versions.pop(key, None)
        if kind == "Pod":
            self.without_kind(kind)

    def is_known(self, kind: str, manifest: Manifest) -> bool:
        """Whether nothing but the status of the object differs from what was seen last."""
        old = self.store.get(key_of(kind, manifest))
        new = None if old is None else self._object(old.key, old.uid, manifest, old)
        return new is not None and old is not None and new.metadata is old.metadata and new.body is old.body

    def seen(self, kind: str, manifest: Manifest, actor: str = OTHERS) -> None:
        """An object as it is at its version; ``actor`` made it so."""
        key, metadata = key_of(kind, manifest), manifest["metadata"]
        version, uid = int(metadata["resourceVersion"]), str(metadata["uid"])
        old, known = self.store.get(key), self.versions.get(key, 0)
        if version == known and actor != OTHERS and old is not None:
            self.cluster.authors[key] = actor
        if version <= known or uid in self._gone:
            return
        self.versions[key] = version
        if old is not None and old.uid != uid:
            self.cluster.vanished(old, OTHERS)
            old = None
        new = self._object(key, uid, manifest, old)
        if old is None or new is not old:
            self.cluster.observed(new, actor)
            if kind == "Pod":
                self._note_foreign(old, new)

    def _note_foreign(self, old: Object | None, new: Object) -> None:
        """Room on a node that somebody else took: what was decided before does not hold there any more."""
        node = new.spec.get("nodeName")
        taken_before = old is not None and old.spec.get("nodeName")
        if node and not taken_before and self._being_bound.get(new.uid) != node:
            self.cluster.node_revisions[str(node)] = self.cluster.revision

    def gone(self, kind: str, manifest: Manifest) -> None:
        """The object was deleted: the manifest is as it was then, at the version of its deletion."""
        key, version = key_of(kind, manifest), int(manifest["metadata"]["resourceVersion"])
        there = self.store.get(key)
        if version >= self.versions.get(key, 0) and there is not None and there.uid == manifest["metadata"]["uid"]:
            self._forget(key)

    def missing(self, key: Key, uid: str) -> None:
        """The server does not know the object (any more)."""
        there = self.store.get(key)
        if there is not None and uid in ("", there.uid):
            self._forget(key)

    def answered(self, key: Key, body: Manifest | None, actor: str) -> None:
        """The server's answer to a write of ours: the object, a Status where it is deleted already, None where it is not there."""
        if body is None or body.get("kind") == "Status":
            self.missing(key, "")
        else:
            self.seen(key.kind, body, actor)

    def without_kind(self, kind: str) -> None:
        """The cluster has the kind no more, nor any object of it, or does not let us see them; they may be seen again."""
        for key, item in list(self.store.of_kind(kind).items()):
            self.versions.pop(key, None)
            self.cluster.vanished(item, OTHERS)

    def binding(self, uid: str, node: str) -> None:
        """The pod is about to be bound to ``node`` by us: the watch may tell so first."""
        self._being_bound[uid] = node

    def not_bound(self, uid: str) -> None:
        """Nothing came of the binding, or what came of it is known."""
        self._being_bound.pop(uid, None)

    def bound(self, key: Key, uid: str, node: str, annotations: Mapping[str, str], actor: str) -> None:
        """The pod was bound to ``node``; the binding brought ``annotations``."""
        self.not_bound(uid)
        pod = self.store.get(key)
        if pod is None or pod.uid != uid or pod.spec.get("nodeName"):
            return
        metadata = pod.metadata
        if annotations:
            metadata = {**metadata, "annotations": {**pod.annotations, **annotations}}
        self.cluster.actor = actor
        self.cluster.bind([(pod, node, metadata)])

    def _index(self, loaded: Store) -> None:
        events = Events()
        events.add_all(
            Event(None, item) for kind in ("Pod", METRIC) for key in loaded.of_kind(kind) if (item := loaded.get(key))
        )
        self.pods.fold(events)
        self.rules.fold(events)

    def _forget(self, key: Key) -> None:
        self.versions.pop(key, None)
        there = self.store.get(key)
        if there is not None:
            self.cluster.vanished(there, OTHERS)
            self._gone[there.uid] = None
            if len(self._gone) > MOST_GONE:
                del self._gone[next(iter(self._gone))]

    def _object(self, key: Key, uid: str, manifest: Manifest, old: Object | None) -> Object:
        """The object with all parts that are as before shared with ``old``; ``old`` itself when nothing changed."""
        cluster = self.cluster
        metadata = _metadata(manifest["metadata"])
        body = body_of(manifest)
        status: Manifest = manifest.get("status") or {}
        if key.kind == "Secret":
            body = _without_values(body)
        if key.kind == "Pod":
            body = self._pod_body(body, old)
        if old is None:
            return Object(key, uid, metadata, body, status, cluster.revision, cluster.revision)
        same_metadata, same_body, same_status = metadata == old.metadata, body == old.body, status == old.status
        if same_metadata and same_body and same_status:
            return old
        return Object(
            key,
            uid,
            old.metadata if same_metadata else metadata,
            old.body if same_body else body,
            old.status if same_status else status,
            cluster.revision,
            old.spec_revision if same_metadata and same_body else cluster.revision,
        )

    def _pod_body(self, body: Manifest, old: Object | None) -> Manifest:
        """A pod's body, shared with the pods that have the same one. Once bound, a pod is never seen unbound again."""
        plain, node = without_node(body)
        content = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
        shared = self._shared.get(content)
        if shared is None:
            if len(self._shared) >= MOST_SHARED:
                self._shared.clear()
            shared = self._shared[content] = plain
        known = str(old.spec.get("nodeName") or "") if old is not None else ""
        return self.cluster.on_node(shared, node or known) if node or known else shared


def key_of(kind: str, manifest: Manifest) -> Key:
    """The key of an object as a server tells it."""
    metadata = manifest["metadata"]
    return Key(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))


def _metadata(given: Manifest) -> Manifest:
    return without_copy({name: part for name, part in given.items() if name not in DROPPED_METADATA})


def _without_values(body: Manifest) -> Manifest:
    return {name: dict.fromkeys(part, HIDDEN) if name == "data" else part for name, part in body.items()}
