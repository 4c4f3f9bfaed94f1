"""HyperNodes: the domains of the network, each with its members and its tier."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.selectors import SELECTOR, check_selector
from admission.domain.shapes import TEXT, WHOLE, ListOf, closed, one_of, within
from admission.domain.world import Review

HYPER_NODE_SPEC = closed(
    tier=WHOLE,
    tierName=TEXT,
    members=ListOf(
        closed(
            type=TEXT,
            selector=closed(exactMatch=closed(name=TEXT), regexMatch=closed(pattern=TEXT), labelMatch=SELECTOR),
        )
    ),
)
MATCHES = ("exactMatch", "regexMatch", "labelMatch")


def check_hyper_node(review: Review) -> Iterable[FieldError]:
    """A tier from 0 on, and members that are each found in exactly one way."""
    spec = review.spec
    yield from within("spec.tier", spec.get("tier", 0), 0)
    members = spec.get("members") or []
    if not members:
        yield FieldError("spec.members", None, "a hypernode needs at least one member; name its nodes or hypernodes")
    for index, member in enumerate(members):
        yield from _check_member(f"spec.members[{index}]", review.key.name, member)


def _check_member(path: str, name: str, member: Mapping[str, Any]) -> Iterable[FieldError]:
    yield from one_of(f"{path}.type", member.get("type") or "", ("Node", "HyperNode"))
    selector = member.get("selector") or {}
    given = [way for way in MATCHES if way in selector]
    if len(given) != 1:
        rule = f"must hold exactly one of {', '.join(MATCHES)}"
        yield FieldError(f"{path}.selector", ", ".join(given) or None, rule)
        return
    exact = (selector.get("exactMatch") or {}).get("name")
    if "exactMatch" in selector and not exact:
        yield FieldError(f"{path}.selector.exactMatch.name", None, "is required; name the member")
    if exact == name and member.get("type") == "HyperNode":
        yield FieldError(f"{path}.selector.exactMatch.name", exact, "a hypernode cannot be its own member")
    if "regexMatch" in selector:
        yield from check_pattern(f"{path}.selector.regexMatch.pattern", selector["regexMatch"].get("pattern") or "")
    yield from check_selector(f"{path}.selector.labelMatch", selector.get("labelMatch"))


def check_pattern(path: str, pattern: str) -> Iterable[FieldError]:
    """``pattern`` is a regular expression, and not an empty one."""
    try:
        re.compile(pattern)
    except re.error as error:
        yield FieldError(path, pattern, f"is no regular expression (regex): {error}")
    if not pattern:
        yield FieldError(path, None, "is required; give a regular expression (regex)")
