"""What the facts hold in the place of what is secret."""

from kube import Manifest
from kube.last_applied import LAST_APPLIED, without_last_applied

HIDDEN = ""
"""What stands in the facts for a value of a Secret."""


def without_copy(metadata: Manifest) -> Manifest:
    """Metadata without kubectl's copy of the manifest, which holds values too."""
    annotations = metadata.get("annotations") or {}
    return (
        metadata if LAST_APPLIED not in annotations else {**metadata, "annotations": without_last_applied(annotations)}
    )
