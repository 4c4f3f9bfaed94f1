"""Many objects of one template: admitted once, so that the members of a gang cost little and share their parts.

The result of admission depends on the name only in the rule for names, except where colocation profiles draw by it.
"""

import orjson

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from admission.domain.names import dns_subdomain
from admission.domain.world import World
from kube import Key, Manifest, Object, from_manifest

_SHARED_KINDS = ("Pod",)
_BY_NAME = "ClusterColocationProfile.config.koordinator.sh"


class Templates:
    """What was admitted so far in one batch, by what it looked like without its name."""

    def __init__(self) -> None:
        self._admitted: dict[tuple[str, str, bytes], tuple[Object, tuple[str, ...]]] = {}

    def admitted(self, key: Key, manifest: Manifest, world: World) -> tuple[Object, tuple[str, ...]]:
        """A new object as it may be stored, with warnings; raises Rejected."""
        if key.kind not in _SHARED_KINDS or world.of_kind(_BY_NAME):
            return _admit(manifest, world)
        look = (key.kind, key.namespace, _without_name(manifest))
        known = self._admitted.get(look)
        if known is None:
            known = self._admitted[look] = _admit(manifest, world)
            return known
        errors = tuple(dns_subdomain("metadata.name", key.name))
        if errors:
            raise Rejected(str(key), errors)
        model, warnings = known
        return Object(key, "", model.metadata, model.body, model.status), warnings


def _admit(manifest: Manifest, world: World) -> tuple[Object, tuple[str, ...]]:
    admitted = admit(manifest, None, world)
    return from_manifest(admitted.manifest), admitted.warnings


def _without_name(manifest: Manifest) -> bytes:
    metadata = {name: part for name, part in (manifest.get("metadata") or {}).items() if name != "name"}
    return orjson.dumps({**manifest, "metadata": metadata})
