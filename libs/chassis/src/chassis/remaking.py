"""Makes a decision again from the state in which it was made, and compares what comes out byte by byte.

What a decision depends on: the facts at ``decided_on``, the newest entitlements of the services that it hears, its own
private state and its own decisions without outcome before it, the subjects that were ``resting``, and ``now``. A core that
is made anew and fed exactly these has to come to the same decision, for what it remembers beyond that is only there to be
fast.
"""

from dataclasses import dataclass

from chassis.core import Core, Reading
from chassis.in_flight import InFlight
from chassis.private_state import PrivateState
from chassis.topics import BY_DECISION
from kube import Decision, Store
from tidegate.codec import facts
from tidegate.codec.decisions import CommitHead, decode_commit, encode_commit, key_of_ref
from tidegate.decision.v1 import decision_pb2
from tidegate.snapshot.v1 import snapshot_pb2


@dataclass(frozen=True, slots=True)
class Comparison:
    """One decision of the commit: as it was made and as it comes out now (None: it does not), and whether they are equal."""

    decision_id: str
    made: Decision
    remade: Decision | None
    same: bool


@dataclass(frozen=True, slots=True)
class Remade:
    """All decisions of the commit compared, and what comes out besides."""

    service: str
    decided_on: int
    now_ms: int
    compared: tuple[Comparison, ...]
    others: tuple[Decision, ...]

    @property
    def same(self) -> bool:
        return all(one.same for one in self.compared)


def remake(snapshot: snapshot_pb2.SystemSnapshot, core: Core, interest: facts.Interest | None = None) -> Remade:
    """Make the commit of ``snapshot`` again with a ``core`` that is new."""
    commit = decision_pb2.Commit.FromString(snapshot.commit)
    in_flight = _feed(snapshot, commit, core, interest)
    decided = core.decide(commit.now_ms, in_flight)
    compared = [_compared(decision_id, made, decided) for decision_id, made in decode_commit(commit)]
    matched = {id(one.remade) for one in compared}
    others = tuple(decision for decision in decided if id(decision) not in matched)
    return Remade(commit.service, commit.decided_on, commit.now_ms, tuple(compared), others)


def _feed(
    snapshot: snapshot_pb2.SystemSnapshot,
    commit: decision_pb2.Commit,
    core: Core,
    interest: facts.Interest | None,
) -> InFlight:
    logs = {log.service: [(e, decision_pb2.Commit.FromString(e.payload)) for e in log.entries] for log in snapshot.logs}
    own = logs.get(commit.service, [])
    PrivateState.of(earlier for _, earlier in own).give(core)
    store = Store()
    if isinstance(core, Reading):
        core.read_from(store)
    core.fold(facts.fold_snapshot(store, snapshot.facts, interest), snapshot.facts.at_ms)
    for service in sorted(commit.inputs):
        for _, heard in logs.get(service, []):
            for _, decision in decode_commit(heard):
                core.hear(service, decision)
    for _, told in own:
        for _, decision in decode_commit(told):
            if decision.name in BY_DECISION:
                core.hear(commit.service, decision)
    in_flight = InFlight()
    for entry, earlier in own:
        for decision_id, decision in () if entry.settled else decode_commit(earlier):
            in_flight.add(decision_id, decision)
            core.assume(decision_id, decision)
    for ref in commit.resting:
        in_flight.rest(key_of_ref(ref), commit.now_ms + 1)
    return in_flight


def _compared(decision_id: str, made: Decision, decided: list[Decision]) -> Comparison:
    about = (made.name, made.subject, made.subject_uid)
    found = next((d for d in decided if (d.name, d.subject, d.subject_uid) == about), None)
    return Comparison(decision_id, made, found, found is not None and _bytes(found) == _bytes(made))


def _bytes(decision: Decision) -> bytes:
    return encode_commit(CommitHead("", 0, 0, 0), [("", decision)])
