"""A running system in virtual time that goes on from a snapshot."""

import orjson

from bus import MemoryBus
from kube import Manifest
from tidegate import subjects
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2
from tidegate.snapshot.v1 import snapshot_pb2
from tidegate_cli.sim.services import Policy
from tidegate_cli.sim.world import World

_SEED = 0xFFFF
"""Makes uids that none of a cluster's objects has."""


def restored(snapshot: snapshot_pb2.SystemSnapshot, policy: Policy | None = None) -> World:
    """The system as it was; its nodes only pretend from now on, and pods leave at once when they are told to.

    It goes on by the choices that its services say were made, unless ``policy`` gives others.

    Decision logs are numbered anew from 1, so the positions in the facts are, too.
    """
    bus = MemoryBus()
    facts = fact_pb2.Snapshot()
    facts.CopyFrom(snapshot.facts)
    for log in snapshot.logs:
        bus.log(subjects.decisions(log.service)).refill(
            (_renamed(entry, log.service), entry.topic) for entry in log.entries
        )
        facts.positions[log.service] = sum(entry.settled for entry in log.entries)
    bus.log(subjects.FACTS).start_from(facts.revision, facts.SerializeToString())
    return World(policy or policy_of(snapshot), {}, _SEED, bus, snapshot.taken_at_ms)


def policy_of(snapshot: snapshot_pb2.SystemSnapshot) -> Policy:
    """What the services of the snapshot had been told."""
    told: dict[str, Manifest] = {log.service: orjson.loads(log.settings) for log in snapshot.logs if log.settings}
    return Policy.told(told)


def _renamed(entry: snapshot_pb2.LogEntry, service: str) -> bytes:
    """The commit as one of a term before all others: whoever leads from now on comes after it."""
    commit = decision_pb2.Commit.FromString(entry.payload)
    commit.epoch = 0
    for number, decision in enumerate(commit.decisions):
        decision.id = f"{service}/0/{entry.sequence}-{number}"
    return commit.SerializeToString()
