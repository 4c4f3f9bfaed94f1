"""Manifests as users send them: JSON, often many that differ in nothing but their names."""

import re
from typing import NamedTuple

import orjson

from kube import Manifest
from kube.limits import MOST_OBJECT_BYTES

_PLAIN = re.compile(rb"[-.a-z0-9]+")
"""A name that JSON writes as it is, and no other way as long as there is no backslash."""


class BadManifest(ValueError):
    """What was sent is no manifest."""


class Read(NamedTuple):
    """A manifest; with a ``name`` its own counts for nothing, and it is shared with others."""

    manifest: Manifest
    name: str = ""


class ManifestReader:
    """Reads one manifest after the other. One that is like the last but for its name is not parsed again."""

    def __init__(self) -> None:
        self._last: Manifest = {}
        self._before = self._behind = b""
        """What stands before and behind the name of the last; nothing where that cannot be told."""

    def read(self, content: bytes) -> Read:
        """What ``content`` says; raises BadManifest."""
        before, behind = self._before, self._behind
        if before and content.startswith(before) and content.endswith(behind):
            name = content[len(before) : len(content) - len(behind)]
            if _PLAIN.fullmatch(name) and len(content) <= MOST_OBJECT_BYTES:
                return Read(self._last, name.decode())
        manifest = read_manifest(content)
        self._last = manifest
        self._before, self._behind = _around_name(content, manifest)
        return Read(manifest)


def _around_name(content: bytes, manifest: Manifest) -> tuple[bytes, bytes]:
    """What stands before and behind the name; nothing unless it is the only text of its kind in there."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not _PLAIN.fullmatch(name.encode()) or b"\\" in content:
        return b"", b""
    quoted = b'"' + name.encode() + b'"'
    before, _, behind = content.partition(quoted)
    return (b"", b"") if quoted in behind else (before + b'"', b'"' + behind)


def read_manifest(content: bytes) -> Manifest:
    """A manifest from JSON; raises BadManifest."""
    if len(content) > MOST_OBJECT_BYTES:
        raise BadManifest(f"a manifest has {len(content):,} bytes; an object may have at most {MOST_OBJECT_BYTES:,}")
    try:
        manifest = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadManifest(f"a manifest is no JSON: {error}") from None
    if not isinstance(manifest, dict):
        raise BadManifest("a manifest is a JSON object")
    return manifest
