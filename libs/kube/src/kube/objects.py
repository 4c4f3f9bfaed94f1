"""One object of the cluster, as facts tell it: immutable, in parts that versions of it share."""

from typing import Any, Final

from kube.keys import Key, Manifest
from kube.kinds import api_version_of


class Object:
    """An object at one revision. Immutable; two are the same only if they are one.

    ``metadata`` holds all of metadata but name, namespace and uid; ``body`` all other top-level keys except apiVersion,
    kind and status. The parts are shared between versions and between objects made from one template: never change them.
    ``revision`` is the place in the log of the fact that changed the object last, ``spec_revision`` of the last one that
    changed more than its status.

    A plain class and not a frozen dataclass: millions are made, and a frozen one takes three times as long to make.
    """

    __slots__ = ("body", "key", "metadata", "revision", "spec_revision", "status", "uid")

    def __init__(
        self,
        key: Key,
        uid: str,
        metadata: Manifest | None = None,
        body: Manifest | None = None,
        status: Manifest | None = None,
        revision: int = 0,
        spec_revision: int = 0,
    ) -> None:
        self.key: Final = key
        self.uid: Final = uid
        self.metadata: Final[Manifest] = {} if metadata is None else metadata
        self.body: Final[Manifest] = {} if body is None else body
        self.status: Final[Manifest] = {} if status is None else status
        self.revision: Final = revision
        self.spec_revision: Final = spec_revision

    def __repr__(self) -> str:
        return f"<{self.key} {self.uid} at {self.revision}>"

    @property
    def kind(self) -> str:
        """The kind with its group, as in ``Key.kind``."""
        return self.key.kind

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def spec(self) -> Manifest:
        return self.body.get("spec") or {}

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def deleting(self) -> bool:
        """Whether the object was deleted and only waits to be gone."""
        return "deletionTimestamp" in self.metadata

    @property
    def created(self) -> str:
        """The creation time, RFC 3339."""
        return str(self.metadata.get("creationTimestamp", ""))

    @property
    def controller(self) -> Manifest | None:
        """The owner reference of the controller, if there is one."""
        owners: list[Manifest] = self.metadata.get("ownerReferences") or []
        for owner in owners:
            if owner.get("controller"):
                return owner
        return owners[0] if len(owners) == 1 else None

    def manifest(self) -> Manifest:
        """The object as a user reads it; only the outermost levels are fresh."""
        kind = self.key.kind
        metadata: Manifest = {"name": self.key.name}
        if self.key.namespace:
            metadata["namespace"] = self.key.namespace
        metadata |= {"uid": self.uid, **self.metadata, "resourceVersion": str(self.revision)}
        result: Manifest = {"apiVersion": api_version_of(kind), "kind": kind.partition(".")[0], "metadata": metadata}
        result.update(self.body)
        if self.status:
            result["status"] = self.status
        return result

    def changed(self, **parts: Any) -> "Object":
        """A version of this object with other parts."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return Object(**{**values, **parts})


_NOT_BODY = frozenset(("apiVersion", "kind", "metadata", "status"))


def body_of(manifest: Manifest) -> Manifest:
    """All top-level parts of a manifest, or of a patch for one, but apiVersion, kind, metadata and status."""
    return {name: part for name, part in manifest.items() if name not in _NOT_BODY}


def from_manifest(manifest: Manifest, *, uid: str = "", revision: int = 0) -> Object:
    """The object that ``manifest`` describes; its uid is ``uid`` or the manifest's own."""
    from kube.kinds import key_of

    metadata = dict(manifest.get("metadata") or {})
    own_uid = metadata.pop("uid", "")
    for name in ("name", "namespace", "resourceVersion"):
        metadata.pop(name, None)
    return Object(
        key_of(manifest), uid or own_uid, metadata, body_of(manifest), manifest.get("status") or {}, revision, revision
    )
