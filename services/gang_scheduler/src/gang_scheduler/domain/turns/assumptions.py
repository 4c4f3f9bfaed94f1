"""Own decisions that have no outcome yet, counted as done: what they bind, whom they evict, for whom they keep room."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.devices.allotments import allotment_of
from gang_scheduler.domain.dra.requests import CLAIM as RESOURCE_CLAIM
from gang_scheduler.domain.line.claims import Claim, Claims
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.reservations.reservation_terms import RESERVATION as RESERVATION_KIND
from gang_scheduler.domain.terms.gang_terms import GroupId
from gang_scheduler.domain.turns.memory import read
from kube import Decision, Key, Manifest, Mutation, Outcome, Verb
from kube.devices import RESERVATION
from kube.volumes import CLAIM


@dataclass(slots=True)
class Assumption:
    """What one decision stands for until its outcome comes."""

    subject: Key
    bound: list[PodRecord] = field(default_factory=list)
    evicted: list[PodRecord] = field(default_factory=list)
    claim: Claim | None = None
    devices: list[tuple[Key, Manifest]] = field(default_factory=list)
    """The resource claims that it changes."""
    reserved: list[str] = field(default_factory=list)
    """The reservations that it places."""

    over: list[PodRecord] = field(default_factory=list)
    """The pods over which it places one."""

    claims: list[Key] = field(default_factory=list)
    """The volume claims that it binds."""


@dataclass(slots=True)
class Assumptions:
    """By decision what is assumed because of it."""

    cluster: Cluster
    claims: Claims
    by_decision: dict[str, Assumption] = field(default_factory=dict)

    def add(self, decision_id: str, decision: Decision) -> None:
        """Count a decision as done."""
        assumption = self.by_decision[decision_id] = Assumption(decision.subject)
        for mutation in decision.mutations:
            if mutation.verb in (Verb.PATCH, Verb.STATUS):
                self._note(assumption, mutation)
        for batch, node in self._batches(decision):
            self.cluster.assume(batch, node)
            assumption.bound += batch
        for record in self._victims(decision):
            record.evicting = self.cluster.departing = True
            assumption.evicted.append(record)
        if decision.payload and "claim" in decision.payload:
            assumption.claim = read(decision.payload["claim"])
            self.claims.add(assumption.claim)

    def _note(self, assumption: Assumption, mutation: Mutation) -> None:
        """Claims and reservations have what a change gives them."""
        key, patch, room = mutation.key, mutation.patch or {}, self.cluster.room
        if mutation.verb is Verb.PATCH and key.kind == CLAIM:
            room.volumes.decided[key] = str((patch.get("spec") or {}).get("volumeName") or "")
            assumption.claims.append(key)
        elif mutation.verb is Verb.PATCH and (record := self.cluster.pods.get(key)):
            assumption.over.append(record)
        elif mutation.verb is Verb.STATUS and key.kind == RESERVATION_KIND:
            node = str(patch.get("nodeName") or "")
            if node:
                room.reserved.assume(key.name, node, assumption.over)
                assumption.reserved.append(key.name)
        elif mutation.verb is Verb.STATUS and key.kind == RESOURCE_CLAIM:
            room.claim_book.assume(key, patch)
            assumption.devices.append((key, patch))

    def settle(self, outcome: Outcome) -> list[PodRecord]:
        """Take back what did not become a fact; whoever it was about is tried again. Returns the pods that are bound now."""
        assumption = self.by_decision.pop(outcome.decision_id, Assumption(outcome.subject))
        for record in assumption.bound:
            if record.assumed and self.cluster.pods.get(record.key) is record:
                self.cluster.unassume(record)
        for key, patch in assumption.devices:
            self.cluster.room.claim_book.unassume(key, patch)
            self.cluster.claimants.unreleased[key] = None
        for record in assumption.evicted:
            record.evicting = False
        for name in assumption.reserved:
            self.cluster.room.reserved.unassume(name)
        if outcome.subject.kind == RESERVATION_KIND:
            self.cluster.room.reserved.note(outcome.subject.name)
        for key in assumption.claims:
            self.cluster.room.volumes.decided.pop(key, None)
        claim = assumption.claim
        if claim is not None:
            claim.ordered = True
            if not outcome.applied:
                self.claims.end(claim)
        gang = self._gang_of(assumption.subject)
        if gang is not None and (assumption.bound or claim or not outcome.applied):
            self.cluster.touch(gang, again=True)
        return [record for record in assumption.bound if record.slot >= 0 and not record.assumed]

    def _victims(self, decision: Decision) -> Iterator[PodRecord]:
        for mutation in decision.mutations:
            record = self.cluster.pods.get(mutation.key) if mutation.verb is Verb.EVICT else None
            if record is not None and record.pod.uid == mutation.uid:
                yield record

    def _batches(self, decision: Decision) -> Iterator[tuple[list[PodRecord], str]]:
        """The pods that a decision binds and that are still to be bound, by node, shape and gang."""
        batch: list[PodRecord] = []
        node = ""
        for mutation in decision.mutations:
            record = self.cluster.pods.get(mutation.key) if mutation.verb is Verb.BIND else None
            if record is None or record.pod.uid != mutation.uid or record.node:
                continue
            if batch and (
                mutation.node != node or record.shape is not batch[0].shape or record.group is not batch[0].group
            ):
                yield batch, node
                batch = []
            node = mutation.node
            record.given = allotment_of(mutation.devices)
            record.reservation = str(((mutation.devices or {}).get(RESERVATION) or {}).get("name") or "")
            batch.append(record)
        if batch:
            yield batch, node

    def _gang_of(self, subject: Key) -> GroupId | None:
        record = self.cluster.pods.get(subject)
        if record is not None:
            return record.group.id
        gang = GroupId("gang", subject.namespace, subject.name)
        return gang if gang in self.cluster.groups else None


def by_gang(records: Iterable[PodRecord]) -> Iterator[tuple[Group, list[PodRecord]]]:
    """The gangs of these pods, each with those of them that are its."""
    found: dict[int, list[PodRecord]] = {}
    for record in records:
        found.setdefault(id(record.group), []).append(record)
    yield from ((members[0].group, members) for members in found.values())
