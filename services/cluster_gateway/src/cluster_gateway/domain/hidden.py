"""What the facts hold in the place of what is secret."""

from kube import Manifest

HIDDEN = ""
"""What stands in the facts for a value of a Secret."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation in which kubectl keeps a whole manifest, values included."""


def without_copy(metadata: Manifest) -> Manifest:
    """Metadata without kubectl's copy of the manifest."""
    annotations = metadata.get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return metadata
    return {**metadata, "annotations": {name: text for name, text in annotations.items() if name != LAST_APPLIED}}
