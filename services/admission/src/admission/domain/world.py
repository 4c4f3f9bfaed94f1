"""What a rule of admission may look at: the object under review, its present version and the other objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kube import Key, Manifest, Object


class World(Protocol):
    """The objects that there are; ``kube.Store`` is one."""

    def get(self, key: Key, /) -> Object | None:
        """The object of ``key``, or None."""

    def of_kind(self, kind: str, /) -> Mapping[Key, Object]:
        """All objects of the kind with group, by key."""

    def annotated(self, kind: str, annotation: str, /) -> Sequence[str]:
        """The names of the objects of ``kind`` that have ``annotation``, sorted."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A world that notes what was looked for by its name and is not there."""

    world: World
    missed: set[Key] = field(default_factory=set)

    def get(self, key: Key, /) -> Object | None:
        found = self.world.get(key)
        if found is None:
            self.missed.add(key)
        return found

    def of_kind(self, kind: str, /) -> Mapping[Key, Object]:
        return self.world.of_kind(kind)

    def annotated(self, kind: str, annotation: str, /) -> Sequence[str]:
        return self.world.annotated(kind, annotation)


@dataclass(frozen=True, slots=True)
class Review:
    """One request: ``manifest`` is the private copy that defaults are filled into, ``old`` the present object or None."""

    key: Key
    manifest: Manifest
    old: Object | None
    world: World

    @property
    def spec(self) -> Manifest:
        """The spec of the manifest; an empty one stands in where there is none."""
        spec: Manifest = self.manifest.setdefault("spec", {})
        return spec

    @property
    def metadata(self) -> Manifest:
        metadata: Manifest = self.manifest["metadata"]
        return metadata

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.metadata.get("labels") or {}
        return labels

    @property
    def creating(self) -> bool:
        return self.old is None

    def before(self, *path: str) -> Any:
        """The value at ``path`` in the body of the present object; None where there is none."""
        value: Any = self.old.body if self.old else None
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def namespace_annotation(self, name: str) -> str:
        """The annotation ``name`` of the object's namespace, or ""."""
        namespace = self.world.get(Key("Namespace", "", self.key.namespace))
        return namespace.annotations.get(name, "") if namespace else ""
