"""How long work runs by what its owner says, and what those are told who wait for its end."""

from collections.abc import Mapping, Sequence

from kube.keys import Manifest
from kube.times import parse_duration, rfc3339
from kube.words import some

ESTIMATE = "tidegate.dev/running-estimate"
"""The annotation of a pod, group, job or workload that says how long its pods run."""


def stated_length(*annotations: Mapping[str, str]) -> int | None:
    """The estimate in the first of the annotations that have one, in milliseconds; None where there is none, or no duration."""
    text = next((found[ESTIMATE] for found in annotations if found.get(ESTIMATE)), None)
    if text is None:
        return None
    try:
        return parse_duration(str(text))
    except ValueError:
        return None


def turn_after(ends: Sequence[tuple[str, int | None]], until: int | None) -> Manifest:
    """When somebody's turn comes who waits for the end of these, each by name and when it ends; None where nobody knows.

    ``until`` is when the last of them should have ended, in milliseconds since the epoch; None when that is unknown.
    """
    names = [name for name, _ in ends]
    if until is not None:
        return {"estimateMs": until, "estimate": f"{rfc3339(until)}, by when {some(names)} should have ended"}
    silent = [name for name, end in ends if end is None]
    unknown = "that" if len(silent) == len(names) else f"that of {some(silent)}"
    return {"estimate": f"once {some(names)} ended; nobody says when {unknown} is"}
