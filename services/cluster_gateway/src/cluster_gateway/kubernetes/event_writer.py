"""What was decided, told as Events of Kubernetes: one for an object and reason, counted up when it is decided again.

A gang's decision is about the gang, so there is one Event for it and none for each of its pods. Events are for people and
are not facts: they give way to what is decided, and when too many wait the newest are kept and the oldest dropped.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from apiserver.api import MERGE_PATCH, Api, ApiRequest, Unreachable, field_manager
from kube import Decision, Key, Manifest, Outcome, rfc3339
from kube.kinds import api_version_of

log = logging.getLogger(__name__)

MOST_WAITING = 10_000
MOST_REMEMBERED = 10_000
GIVING_WAY_SECONDS = 0.1
"""While many requests carry decisions out, no more than one Event is written in this time."""
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
_Event = tuple[Key, str, str, str]
"""The object, its uid, the reason and who decided: what one Event is about."""


@dataclass(slots=True)
class _Told:
    """An Event as it was written last."""

    message: str
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An Event that is to be written, as of ``at``."""

    service: str
    decision: Decision
    at: str

    @property
    def is_warning(self) -> bool:
        return self.decision.name.endswith(WARNINGS)

    @property
    def namespace(self) -> str:
        return self.decision.subject.namespace or "default"


@dataclass(slots=True)
class EventWriter:
    """Writes Events in the background; ``busy`` says whether the API server has more important things to do for us.

    What came of an object that is not ``there`` any more when its turn comes is told only where it is a warning.
    """

    api: Api
    reporter: str
    busy: Callable[[], bool]
    there: Callable[[Key], bool]
    _waiting: dict[_Event, _Waiting] = field(default_factory=dict)
    _told: dict[_Event, _Told] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, service: str, decision: Decision, outcome: Outcome, now: int) -> None:
        """Tell what was decided and done, or was begun and could not be done, at ``now`` (ms), if it is worth telling."""
        if not decision.reason or not decision.message or decision.name.endswith(SILENT):
            return
        if not outcome.applied:
            decision = _not_done(decision, outcome)
            log.warning("decision_not_done", extra={"decision": outcome.decision_id, "detail": decision.message})
        event = (decision.subject, decision.subject_uid, decision.reason, service)
        told = self._told.get(event)
        if told is not None and told.message == decision.message:
            return
        at = rfc3339(now)
        self._told[event] = _Told(decision.message, 1 if told is None else told.count + 1, told.first if told else at)
        if len(self._told) > MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        self._waiting.pop(event, None)
        self._waiting[event] = _Waiting(service, decision, at)
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._wake.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                if self.busy():
                    await asyncio.sleep(GIVING_WAY_SECONDS)
                event = next(iter(self._waiting))
                waiting, told = self._waiting.pop(event), self._told.get(event)
                if not waiting.is_warning and not self.there(event[0]):
                    continue
                try:
                    await self._write(_manifest(waiting, told, _name(event), self.reporter))
                except Unreachable as error:
                    log.warning("event_not_written", extra={"detail": str(error)})
                    await asyncio.sleep(1.0)

    async def _write(self, event: Manifest) -> None:
        name, path = event["metadata"]["name"], f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        answer = await self.api.send(ApiRequest("POST", path, event))
        if answer.code == CONFLICT:
            changed = {key: event[key] for key in ("message", "count", "lastTimestamp", "type")}
            answer = await self.api.send(ApiRequest("PATCH", f"{path}/{name}", changed, content=MERGE_PATCH))
        if not answer.ok:
            log.warning("event_refused", extra={"event": name, "detail": answer.message})


def _name(event: _Event) -> str:
    content = "/".join(map(str, event)).encode()
    return f"{event[0].name}.{hashlib.sha1(content, usedforsecurity=False).hexdigest()[:16]}"


def _not_done(decision: Decision, outcome: Outcome) -> Decision:
    """What is told of a decision that was begun and failed: how much of it, and the first of the reasons."""
    failed, what = len(outcome.reasons), decision.name
    parts = "1 part" if failed == 1 else f"{failed} parts"
    reasons = "; ".join(
        f"{key or 'all of it'} {reason}" for key, reason in sorted(outcome.reasons.items())[:MOST_REASONS]
    )
    message = f"{what}: {parts} of {len(decision.mutations)} could not be done: {reasons}"
    return replace(decision, name=FAILED, reason=FAILED, message=message)


def _manifest(waiting: _Waiting, told: _Told | None, name: str, reporter: str) -> Manifest:
    decision, subject, component = waiting.decision, waiting.decision.subject, field_manager(waiting.service)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": waiting.namespace},
        "involvedObject": {
            "apiVersion": api_version_of(subject.kind),
            "kind": subject.kind.partition(".")[0],
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": decision.subject_uid,
        },
        "type": "Warning" if waiting.is_warning else "Normal",
        "reason": decision.reason,
        "message": decision.message[:LONGEST_MESSAGE],
        "count": told.count if told is not None else 1,
        "firstTimestamp": told.first if told is not None else waiting.at,
        "lastTimestamp": waiting.at,
        "source": {"component": component, "host": reporter},
        "reportingComponent": component,
        "reportingInstance": reporter,
    }
