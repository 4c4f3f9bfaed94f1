"""How a gateway finds out where its predecessor was: all of it is in the logs."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from bus import Bus, Entry, Log
from chassis.fact_fold import FactFold, load
from chassis.parking import Parking
from tidegate import subjects
from tidegate.codec.facts import outcomes
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2

log = logging.getLogger(__name__)

REQUESTS = "Tidegate-Requests"
"""The header of a change set that names the requests done with it, so that a successor does none of them again."""

REMEMBERED_ENTRIES = 20
"""How far back a gateway that starts looks for requests that are done. Each is answered before the next entry is
written, so that those who did not hear of it are in the last few."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state as of the end of the log, and from which revision on it had to be read."""

    fold: FactFold
    snapshot_at: int
    positions: dict[str, int]
    """How far each service's log was carried out; never behind its end, which a power cut may have taken back."""

    requests: list[str]
    """The requests that were done of late."""


async def recover(bus: Bus, services: Sequence[str], parking: Parking) -> Recovered:
    """Read the facts to their end."""
    fold, _ = await load(bus.log(subjects.FACTS))
    snapshot_at = fold.revision
    requests = await _catch_up(bus, fold, parking)
    return Recovered(fold, snapshot_at, await _positions(bus, services, fold), requests)


async def ended_already(bus: Bus, service: str, position: int) -> frozenset[str]:
    """The decisions of ``service`` behind ``position`` that have their outcomes: those that took less long than one before them.

    An outcome stands behind the revision that its decision was made on, so not all of the facts are read.
    """
    source, facts = bus.log(subjects.decisions(service)), bus.log(subjects.FACTS)
    ids, oldest = set[str](), await facts.last()
    async for entry in _behind(source, position):
        commit = decision_pb2.Commit()
        with suppress(DecodeError):
            commit.ParseFromString(entry.payload)
            ids.update(item.id for item in commit.decisions)
            oldest = min(oldest, commit.decided_on) if commit.decisions else oldest
    ended = set[str]()
    if ids:
        async for entry in _behind(facts, max(oldest, await facts.first() - 1)):
            ended.update(item.decision_id for item in outcomes(fact_pb2.ChangeSet.FromString(entry.payload)))
    return frozenset(ids & ended)


async def _behind(log: Log, position: int) -> AsyncIterator[Entry]:
    """The entries behind ``position`` that are there now."""
    last = await log.last()
    if position >= last:
        return
    async with aclosing(log.read(position)) as reader:
        async for entries in reader:
            for entry in entries:
                yield entry
            if entries[-1].sequence >= last:
                return


async def _catch_up(bus: Bus, fold: FactFold, parking: Parking) -> list[str]:
    facts = bus.log(subjects.FACTS)
    goal, first = await facts.last(), await facts.first()
    after = min(fold.revision, max(goal - REMEMBERED_ENTRIES, first - 1))
    done: list[str] = []
    if after >= goal:
        return done
    async with aclosing(facts.read(after)) as reader:
        async for entries in reader:
            for entry in entries:
                await _fold(fold, entry, parking)
                done += filter(None, entry.headers.get(REQUESTS, "").split(","))
            if entries[-1].sequence >= goal:
                break
    return done


async def _fold(fold: FactFold, entry: Entry, parking: Parking) -> None:
    try:
        fold.take(entry)
    except Exception as error:  # the cluster goes on without what nobody can read
        await parking.entry(f"{subjects.FACTS}/{entry.sequence}", entry, error)


async def _positions(bus: Bus, services: Sequence[str], fold: FactFold) -> dict[str, int]:
    positions = dict(fold.positions)
    for service in services:
        last = await bus.log(subjects.decisions(service)).last()
        if positions.get(service, 0) > last:
            log.error("decisions_lost", extra={"service": service, "carried_out": positions[service], "last": last})
            positions[service] = last
    return positions
