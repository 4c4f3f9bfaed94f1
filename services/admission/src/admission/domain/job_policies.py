"""The policies of a Volcano Job: which event, or which exit code, leads to which action."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.shapes import TEXT, TEXTS, WHOLE, ListOf, closed, one_of
from kube import parse_duration

POLICIES = ListOf(closed(action=TEXT, event=TEXT, events=TEXTS, exitCode=WHOLE, timeout=TEXT))

ANY_EVENT = "*"
EVENTS = (
    ANY_EVENT, "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated",
)  # fmt: skip
ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob",
)  # fmt: skip


def events_of(policy: Mapping[str, Any]) -> list[str]:
    """All events that the policy names, each once."""
    event = policy.get("event")
    return list(dict.fromkeys([*([event] if event else []), *(policy.get("events") or [])]))


def check_policies(path: str, policies: Iterable[Mapping[str, Any]]) -> Iterable[FieldError]:
    """Each policy is sound by itself, and no event and no exit code is in two of them."""
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        where, named = f"{path}[{index}]", events_of(policy)
        yield from _check_policy(where, policy, named)
        for event in named:
            if event in events:
                yield FieldError(f"{where}.event", event, f"event {event} is in two policies; keep one of them")
        events.update(named)
        code = policy.get("exitCode")
        if code is not None and code in codes:
            yield FieldError(f"{where}.exitCode", code, f"exitCode {code} is in two policies; keep one of them")
        codes.update([] if code is None else [code])
    if ANY_EVENT in events and len(events) > 1:
        rule = f"{ANY_EVENT} stands for every event and excludes policies for others; drop one of the two"
        yield FieldError(path, ", ".join(sorted(events)), rule)


def _check_policy(path: str, policy: Mapping[str, Any], events: list[str]) -> Iterable[FieldError]:
    code = policy.get("exitCode")
    if events and code is not None:
        yield FieldError(f"{path}.exitCode", code, "give an event or an exitCode, not both; make two policies")
    if not events and code is None:
        yield FieldError(f"{path}.event", None, "a policy needs an event, events or an exitCode")
    if code == 0:
        yield FieldError(f"{path}.exitCode", code, "0 is no failure; give an exit code other than 0")
    for event in events:
        yield from one_of(f"{path}.event", event, EVENTS)
    yield from one_of(f"{path}.action", policy.get("action") or "", ACTIONS)
    if "timeout" in policy:
        yield from check_duration(f"{path}.timeout", policy["timeout"])


def check_duration(path: str, text: str) -> Iterable[FieldError]:
    """``text`` is a duration such as 30s or 1h30m."""
    try:
        parse_duration(text)
    except ValueError:
        yield FieldError(path, text, "must be a duration such as 500ms, 30s or 1h30m")
