"""What kubectl remembers in an object: no part of what the object says."""

from collections.abc import Mapping

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation in which kubectl keeps a whole manifest, the values of a Secret included."""


def without_last_applied(annotations: Mapping[str, str]) -> dict[str, str]:
    """``annotations`` without kubectl's copy of the manifest."""
    return {name: text for name, text in annotations.items() if name != LAST_APPLIED}
