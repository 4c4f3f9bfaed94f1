"""Takes snapshots of all that decisions depend on: of the present, and of the moment at which a decision was made."""

from collections.abc import Iterable
from dataclasses import dataclass

import orjson
from google.protobuf.message import DecodeError

from bus import Bus, BusError, Entry, Log
from chassis.fact_fold import FactFold, load
from chassis.log_reader import between
from chassis.private_state import private_of
from chassis.topics import BY_DECISION, STATE, newest, topic_of
from kube import Object
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.snapshots import FORMAT
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2
from tidegate.snapshot.v1 import snapshot_pb2

ASK_SECONDS = 2.0


class NotKept(LookupError):
    """What is asked for is not in the logs, or not any more; the text says what."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Takes snapshots of the ``services`` on ``bus``. Reads only: nobody waits for it, nothing changes."""

    bus: Bus
    services: tuple[str, ...]
    version: str = ""

    async def logs(self) -> tuple[list[snapshot_pb2.ServiceLog], int]:
        """What counts of the logs now, and the revision that the facts have to have reached to go with it."""
        found, goal = [], 0
        for service in self.services:
            log = self.bus.log(subjects.decisions(service))
            last = await log.last()
            entries = {entry.sequence: entry for entry in await _newest_of_topics(log, last + 1)}
            entries |= {entry.sequence: entry for entry in await _tail(log, last)}
            goal = max([goal, *(_decided_on(entry) for entry in entries.values())])
            kept = [_entry(entries[sequence]) for sequence in sorted(entries)]
            found.append(snapshot_pb2.ServiceLog(service=service, settings=await self._settings(service), entries=kept))
        return found, goal

    def present(
        self, logs: Iterable[snapshot_pb2.ServiceLog], objects: Iterable[Object], fold: FactFold, now: int
    ) -> snapshot_pb2.SystemSnapshot:
        """The snapshot of ``objects`` as of ``fold`` with ``logs`` that were read before; ``now`` is in ms since the epoch."""
        content = facts.encode_snapshot(objects, fold.revision, fold.at_ms, fold.positions)
        return self._assembled(content, logs, fold, now)

    async def of_decision(self, decision_id: str) -> snapshot_pb2.SystemSnapshot:
        """The state in which a decision was made; raises NotKept."""
        service = decision_id.partition("/")[0]
        if service not in self.services:
            raise NotKept(f"{decision_id!r} is no decision of {', '.join(self.services)}")
        found = await _commit_of(self.bus.log(subjects.decisions(service)), decision_id)
        commit = decision_pb2.Commit.FromString(found.payload)
        fold = await self._facts_at(commit.decided_on)
        logs = []
        for name in self.services:
            log = self.bus.log(subjects.decisions(name))
            until = found.sequence if name == service else commit.inputs.get(name, fold.positions.get(name, 0)) + 1
            entries = {entry.sequence: entry for entry in await _newest_of_topics(log, until)}
            for entry in await between(log, fold.positions.get(name, 0), until - 1) if name == service else ():
                entries[entry.sequence] = entry
            kept = [_entry(entries[sequence]) for sequence in sorted(entries)]
            logs.append(snapshot_pb2.ServiceLog(service=name, settings=await self._settings(name), entries=kept))
        objects = fold.store.objects.values()
        content = facts.encode_snapshot(objects, fold.revision, fold.at_ms, fold.positions)
        snapshot = self._assembled(content, logs, fold, commit.now_ms)
        snapshot.decision_id, snapshot.commit = decision_id, found.payload
        return snapshot

    def _assembled(
        self, content: bytes, logs: Iterable[snapshot_pb2.ServiceLog], fold: FactFold, now: int
    ) -> snapshot_pb2.SystemSnapshot:
        snapshot = snapshot_pb2.SystemSnapshot(format=FORMAT, version=self.version, taken_at_ms=now, logs=logs)
        snapshot.facts.CopyFrom(fact_pb2.Snapshot.FromString(content))
        for log in snapshot.logs:
            position = fold.positions.get(log.service, 0)
            topical = {topic: entry.sequence for entry in log.entries for topic in entry.topic.split("-") if topic}
            changes = {e.sequence for e in log.entries if e.sequence > topical.get(STATE, 0) and _is_change(e)}
            needed = changes.union(topical.values())
            kept = [e for e in log.entries if e.sequence > position or e.sequence in needed]
            for entry in kept:
                entry.settled = entry.sequence <= position
            del log.entries[:]
            log.entries.extend(kept)
        return snapshot

    async def _facts_at(self, revision: int) -> FactFold:
        log = self.bus.log(subjects.FACTS)
        fold, _ = await load(log, revision)
        if fold.revision > revision:
            raise NotKept(f"the facts of revision {revision} are not kept any more; the oldest are of {fold.revision}")
        for entry in await between(log, fold.revision, revision):
            fold.take(entry)
        return fold

    async def _settings(self, service: str) -> bytes:
        """What a service was told when it started; empty where it does not answer."""
        try:
            answer = await self.bus.request(subjects.question(service, "settings"), b"{}", timeout=ASK_SECONDS)
        except BusError:
            return b""
        return orjson.dumps(orjson.loads(answer), option=orjson.OPT_SORT_KEYS)


async def _tail(log: Log, last: int, most: int = 2_000) -> list[Entry]:
    """The newest entries: those without outcome are among them."""
    return await between(log, last - most, last)


async def _newest_of_topics(log: Log, before: int) -> list[Entry]:
    """Of each topic the newest entry before a sequence."""
    found: dict[str, Entry] = {}
    too_new: list[str] = []
    for topic in [*sorted(set(BY_DECISION.values())), STATE]:
        entry = await newest(log, topic)
        if entry is not None and entry.sequence < before:
            found[topic] = entry
        elif entry is not None:
            too_new.append(topic)
    for entry in await between(log, 0, before - 1) if too_new else ():
        found |= {topic: entry for topic in _topic(entry).split("-") if topic in too_new}
    whole = found.get(STATE)
    in_parts = whole is not None and decision_pb2.Commit.FromString(whole.payload).private_whole
    later = await between(log, whole.sequence, before - 1) if whole is not None and in_parts else []
    return [*found.values(), *(entry for entry in later if _is_change(entry))]


async def _commit_of(log: Log, decision_id: str) -> Entry:
    needle = decision_id.encode()
    for entry in await between(log, 0, await log.last()):
        if needle in entry.payload:
            commit = decision_pb2.Commit.FromString(entry.payload)
            if any(decision.id == decision_id for decision in commit.decisions):
                return entry
    raise NotKept(f"decision {decision_id} is not in the log of its service, or not any more")


def _entry(entry: Entry) -> snapshot_pb2.LogEntry:
    return snapshot_pb2.LogEntry(sequence=entry.sequence, topic=_topic(entry), payload=entry.payload)


def _topic(entry: Entry) -> str:
    commit = _commit(entry)
    return (
        ""
        if commit is None
        else topic_of((one.name for one in commit.decisions), with_state=private_of(commit).is_whole)
    )


def _is_change(entry: Entry | snapshot_pb2.LogEntry) -> bool:
    commit = _commit(entry)
    return commit is not None and bool(commit.private_parts) and not commit.private_whole


def _decided_on(entry: Entry) -> int:
    commit = _commit(entry)
    return 0 if commit is None else commit.decided_on


def _commit(entry: Entry | snapshot_pb2.LogEntry) -> decision_pb2.Commit | None:
    """The commit of an entry; None where it cannot be read."""
    try:
        return decision_pb2.Commit.FromString(entry.payload)
    except DecodeError:
        return None
