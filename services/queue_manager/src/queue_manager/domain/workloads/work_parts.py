"""The parts of a workload: so many pods alike each, of which some may be left out where quota is short.

Source: Kueue's ``podSets`` with ``minCount``, and its search for the largest size that fits.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kube import Manifest
from kube.pods import pod_request

Requests = tuple[tuple[str, int], ...]
"""Amounts by resource, sorted, without zeros."""


class WorkPart(NamedTuple):
    """``size`` pods of one kind; each asks for ``requests``, and ``least`` of them are enough to start."""

    name: str
    size: int
    least: int
    requests: Requests
    constraints: str = ""
    """What a pod says of its nodes; see ``Constraints``."""

    def asked(self, count: int) -> Requests:
        """What ``count`` of its pods ask for together; the number of pods counts as a resource."""
        amounts = {name: amount * count for name, amount in self.requests if amount * count}
        return tuple(sorted({**amounts, "pods": count}.items()))


def read_parts(listed: Any, constraints: Any) -> tuple[WorkPart, ...]:
    """The pod sets of a Workload's spec; ``constraints`` reads what a pod spec demands of nodes.

    What is no number counts as one pod, as an object without a count does.
    """
    found = []
    for item in listed if isinstance(listed, list) else ():
        spec = (item.get("template") or {}).get("spec") or {}
        count = _whole(item.get("count"), 1)
        least = min(count, max(0, _whole(item.get("minCount"), count)))
        found.append(make_part(str(item.get("name") or "main"), count, least, spec, constraints))
    return tuple(found)


def make_part(name: str, count: int, least: int, spec: Manifest, constraints: Any) -> WorkPart:
    """``count`` pods of ``spec``."""
    requests = tuple(sorted((name, amount) for name, amount in pod_request(spec).items() if amount))
    return WorkPart(name, count, least, requests, constraints(spec).text)


def slack(sets: Sequence[WorkPart]) -> int:
    """How many pods may be left out in all."""
    return sum(item.size - item.least for item in sets)


def shortened(sets: Sequence[WorkPart], left_out: int) -> tuple[int, ...]:
    """The counts where ``left_out`` of the slack is used, spread over the sets in proportion to what each may leave out."""
    most = slack(sets)
    return tuple(item.size - (item.size - item.least) * left_out // most if most else item.size for item in sets)


def sizes(sets: Sequence[WorkPart]) -> Iterator[tuple[int, ...]]:
    """All counts from the fullest to the least: the plain reference of the search by halves."""
    for left_out in range(slack(sets) + 1):
        yield shortened(sets, left_out)


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
