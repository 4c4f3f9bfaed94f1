"""Many objects of one template: admitted once, so that the members of a gang cost little and share their parts.

The result of admission depends on the name only in the rule for names, except where colocation profiles draw by it. It
holds as long as no object of a kind that was looked at for it has changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from admission.domain.names import dns_subdomain
from admission.domain.overlay import Overlay, Stamp
from admission.domain.world import World
from kube import Key, Manifest, Object, from_manifest

_SHARED_KINDS = ("Pod",)
_BY_NAME = "ClusterColocationProfile.config.koordinator.sh"
MOST_KEPT = 1_000

Look = tuple[str, str, bytes]
"""Kind, namespace, and the manifest without its name."""


class _Consulted:
    """A world that notes the kinds that were looked at."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.kinds: set[str] = set()

    def get(self, key: Key, /) -> Object | None:
        self.kinds.add(key.kind)
        return self._world.get(key)

    def of_kind(self, kind: str, /) -> Mapping[Key, Object]:
        self.kinds.add(kind)
        return self._world.of_kind(kind)

    def annotated(self, kind: str, annotation: str, /) -> Sequence[str]:
        self.kinds.add(kind)
        return self._world.annotated(kind, annotation)


@dataclass(slots=True)
class _Known:
    """One template, admitted as of ``revision`` and what a request changed by then; ``kinds`` are those that this rests on."""

    model: Object
    warnings: tuple[str, ...]
    kinds: frozenset[str]
    revision: int
    stamp: Stamp


class Templates:
    """What was admitted so far, by what it looked like without its name.

    ``changed_at`` says at which revision an object of a kind changed last.
    """

    def __init__(self, changed_at: Callable[[str], int]) -> None:
        self._changed_at = changed_at
        self._known: dict[Look, _Known] = {}
        self._read: dict[int, tuple[Manifest, _Known]] = {}
        """By the identity of a manifest that others were read as likenesses of."""

    def admitted(
        self, key: Key, manifest: Manifest, world: Overlay, revision: int, *, origin: Manifest | None = None
    ) -> tuple[Object, tuple[str, ...]]:
        """A new object as it may be stored in ``world``, of ``revision``, with warnings; raises Rejected.

        ``origin`` is the manifest that ``like`` will be asked with for those that differ from it in their names.
        """
        if key.kind not in _SHARED_KINDS or world.of_kind(_BY_NAME):
            return _admit(manifest, world)
        look = (key.kind, key.namespace, _without_name(manifest))
        known = self._known.get(look)
        if known is not None and self._holds(known, world):
            model = _named(known, key)
        else:
            consulted = _Consulted(world)
            model, warnings = _admit(manifest, consulted)
            kinds = frozenset(consulted.kinds)
            known = self._known[look] = _Known(model, warnings, kinds, revision, world.stamp(kinds))
        if origin is not None:
            self._read[id(origin)] = (origin, known)
        self._forget_oldest()
        return model, known.warnings

    def like(self, origin: Manifest, name: str, world: Overlay) -> tuple[Object, tuple[str, ...]] | None:
        """What ``admitted`` would say of ``origin`` under another name; None if that is not known. Raises Rejected."""
        found = self._read.get(id(origin))
        if found is None or world.of_kind(_BY_NAME) or not self._holds(found[1], world):
            return None
        kind, namespace, _ = found[1].model.key
        return _named(found[1], Key(kind, namespace, name)), found[1].warnings

    def _holds(self, known: _Known, world: Overlay) -> bool:
        changed_at = self._changed_at
        at = known.revision
        return known.stamp == world.stamp(known.kinds) and all(changed_at(kind) <= at for kind in known.kinds)

    def _forget_oldest(self) -> None:
        if len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]
        if len(self._read) > MOST_KEPT:
            del self._read[next(iter(self._read))]


def _named(known: _Known, key: Key) -> Object:
    errors = tuple(dns_subdomain("metadata.name", key.name))
    if errors:
        raise Rejected(str(key), errors)
    model = known.model
    return Object(key, "", model.metadata, model.body, model.status)


def _admit(manifest: Manifest, world: World) -> tuple[Object, tuple[str, ...]]:
    admitted = admit(manifest, None, world)
    return from_manifest(admitted.manifest), admitted.warnings


def _without_name(manifest: Manifest) -> bytes:
    metadata = {name: part for name, part in (manifest.get("metadata") or {}).items() if name != "name"}
    return orjson.dumps({**manifest, "metadata": metadata})
