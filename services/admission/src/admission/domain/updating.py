"""What an apply makes of an object that exists: the body is replaced, labels and annotations are added to."""

from kube import Manifest, Object

_KEPT = ("ownerReferences", "finalizers")


def updated(manifest: Manifest, old: Object | None) -> Manifest:
    """``manifest`` with what it does not speak of taken from the present version."""
    if old is None:
        return manifest
    given = dict(manifest.get("metadata") or {})
    for name in ("labels", "annotations"):
        if old.metadata.get(name) or given.get(name):
            given[name] = {**(old.metadata.get(name) or {}), **(given.get(name) or {})}
    for name in _KEPT:
        if name in old.metadata and name not in given:
            given[name] = old.metadata[name]
    return {**manifest, "metadata": given}
