"""What was decided, told as Events of Kubernetes: one for an object and reason, counted up when it is decided again.

A gang's decision is about the gang, so there is one Event for it and none for each of its pods. Events are for people and
are not facts: when the API server does not take them the newest are kept and the oldest dropped.
"""

import asyncio
import hashlib
import logging
from collections import deque
from dataclasses import dataclass, field, replace

from apiserver.api import MERGE_PATCH, Api, ApiRequest, Unreachable
from kube import Decision, Manifest, Outcome, rfc3339
from kube.kinds import api_version_of

log = logging.getLogger(__name__)

MOST_WAITING = 1_000
MOST_REMEMBERED = 10_000
LONGEST_MESSAGE = 1_024
"""Longer messages of Events are refused by the API server."""
SILENT = ("Changed", "Reported", "Shown", "Computed", "Noted", "Used")
"""How the names of decisions end that only bring a status up to date."""
WARNINGS = (
    "Held",
    "Waits",
    "Waiting",
    "Failed",
    "Refused",
    "Evicted",
    "Missed",
    "Terminated",
    "Revoked",
    "Explained",
    "Preempted",
    "Reclaimed",
)
FAILED = "CarryingOutFailed"
MOST_REASONS = 3
CONFLICT = 409


@dataclass(slots=True)
class _Told:
    """An Event as it was written last."""

    message: str
    count: int
    first: str


@dataclass(slots=True)
class EventWriter:
    """Writes Events in the background."""

    api: Api
    reporter: str
    _waiting: deque[tuple[str, str, Manifest]] = field(default_factory=lambda: deque(maxlen=MOST_WAITING))
    _told: dict[str, _Told] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, service: str, decision: Decision, outcome: Outcome, now: int) -> None:
        """Tell what was decided and done, or was begun and could not be done, at ``now`` (ms), if it is worth telling."""
        if not decision.reason or not decision.message or decision.name.endswith(SILENT):
            return
        if not outcome.applied:
            decision = _not_done(decision, outcome)
            log.warning("decision_not_done", extra={"decision": outcome.decision_id, "detail": decision.message})
        namespace = decision.subject.namespace or "default"
        content = f"{decision.subject}/{decision.subject_uid}/{decision.reason}/{service}"
        name = f"{decision.subject.name}.{hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest()[:16]}"
        told = self._told.get(name)
        if told is not None and told.message == decision.message:
            return
        at = rfc3339(now)
        told = self._told[name] = _Told(
            decision.message, 1 if told is None else told.count + 1, told.first if told else at
        )
        if len(self._told) > MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        self._waiting.append((namespace, name, _event(service, self.reporter, decision, namespace, name, told, at)))
        self._wake.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                namespace, name, event = self._waiting.popleft()
                try:
                    await self._write(namespace, name, event)
                except Unreachable as error:
                    log.warning("event_not_written", extra={"detail": str(error)})
                    await asyncio.sleep(1.0)

    async def _write(self, namespace: str, name: str, event: Manifest) -> None:
        path = f"/api/v1/namespaces/{namespace}/events"
        answer = await self.api.send(ApiRequest("POST", path, event))
        if answer.code == CONFLICT:
            changed = {key: event[key] for key in ("message", "count", "lastTimestamp", "type")}
            answer = await self.api.send(ApiRequest("PATCH", f"{path}/{name}", changed, content=MERGE_PATCH))
        if not answer.ok:
            log.warning("event_refused", extra={"event": name, "detail": answer.message})


def _not_done(decision: Decision, outcome: Outcome) -> Decision:
    """What is told of a decision that was begun and failed: how much of it, and the first of the reasons."""
    failed, what = len(outcome.reasons), decision.name
    parts = "1 part" if failed == 1 else f"{failed} parts"
    reasons = "; ".join(
        f"{key or 'all of it'} {reason}" for key, reason in sorted(outcome.reasons.items())[:MOST_REASONS]
    )
    message = f"{what}: {parts} of {len(decision.mutations)} could not be done: {reasons}"
    return replace(decision, name=FAILED, reason=FAILED, message=message)


def _event(
    service: str, reporter: str, decision: Decision, namespace: str, name: str, told: _Told, at: str
) -> Manifest:
    subject = decision.subject
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": api_version_of(subject.kind),
            "kind": subject.kind.partition(".")[0],
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": decision.subject_uid,
        },
        "type": "Warning" if decision.name.endswith(WARNINGS) else "Normal",
        "reason": decision.reason,
        "message": told.message[:LONGEST_MESSAGE],
        "count": told.count,
        "firstTimestamp": told.first,
        "lastTimestamp": at,
        "source": {"component": f"tidegate-{service.replace('_', '-')}", "host": reporter},
        "reportingComponent": f"tidegate-{service.replace('_', '-')}",
        "reportingInstance": reporter,
    }
