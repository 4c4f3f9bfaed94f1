"""Why something waits, in words with names and numbers: which rule keeps how many nodes out, what is needed and what is there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Ints, Mask
from gang_scheduler.domain.devices.device_needs import NumaPolicy
from gang_scheduler.domain.nodes.filters import sieve
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.reasons.upstream_words import available
from gang_scheduler.domain.room.reservation_use import used_by
from gang_scheduler.domain.room.room import Room
from kube import Manifest
from kube.lent_resources import is_lent
from resources.amounts import format_amount

_T = TypeVar("_T")

LENDS_MORE = "until a node lends more"
"""How long somebody waits who is too large for what is lent now, and not for what may be."""


class Reason(StrEnum):
    """Why a gang waits."""

    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    NO_NODE_MATCHES = "NoNodeMatches"
    NEVER_FITS = "NeverFits"
    NO_DOMAIN = "TopologyPlacementFailed"
    NOT_ENOUGH_PODS = "NotEnoughTasks"
    NOT_ENOUGH_OF_ROLE = "NotEnoughPodsOfTask"
    QUEUE_CAPABILITY = "QueueCapability"
    QUEUE_CLOSED = "QueueClosed"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    QUEUE_MISSING = "QueueMissing"
    GUARANTEED_TO_OTHERS = "GuaranteedToOthers"
    BEHIND_HEAD = "BehindHeadOfQueue"
    GROUP_MISSING = "PodGroupMissing"
    BUNDLE_INCOMPLETE = "BundleIncomplete"
    ROOM_BEING_FREED = "RoomBeingFreed"
    BAD_REQUESTS = "BadRequests"
    READY = "Ready"
    NODES_TOO_BUSY = "NodesTooBusy"
    DEVICES_MISSING = "DevicesMissing"
    VOLUMES_NOT_READY = "VolumesNotReady"
    RUNTIME_CLASS = "RuntimeClassUnfit"
    PAUSED = "SchedulingPaused"


@dataclass(frozen=True, slots=True)
class Explanation:
    """``message`` is for people. Its ``signature`` leaves out what changes all the time: two of one signature say the same."""

    reason: Reason
    message: str
    detail: Manifest = field(default_factory=dict)

    @property
    def signature(self) -> str:
        return signature(self.message)


@lru_cache(maxsize=4096)
def signature(message: str) -> str:
    """A message without its numbers and without what stands in parentheses.

    Numbers in names stay, and nothing is not the same as something.
    """
    return re.sub(r"(?<![\w.-])\d[\w.]*", _number, re.sub(r"\([^()]*\)", "", message))


def _number(found: re.Match[str]) -> str:
    return found[0] if found[0] == "0" else "#"


@dataclass(frozen=True, slots=True)
class NodeReport:
    """How a pod fares on all nodes: ``filters`` says how many nodes fail first at what."""

    nodes: int
    filters: tuple[tuple[str, int], ...]
    short: tuple[Manifest, ...]
    """For every resource that is too little somewhere: its name, what is needed, the most that is free, and where."""

    obstacle: str = ""
    """What keeps the pod from every node, whatever the nodes are like."""

    reserved: str = ""
    """What became of the reservations that the pod might have used."""

    rule: Reason = Reason.NO_NODE_MATCHES
    """What the reason is where there is enough of all resources."""

    @property
    def fitting(self) -> int:
        return 0 if self.obstacle else self.nodes - sum(count for _, count in self.filters)

    @property
    def reason(self) -> Reason:
        if self.obstacle:
            return Reason.VOLUMES_NOT_READY
        return Reason.NOT_ENOUGH_RESOURCES if self.short else self.rule

    def sentence(self) -> str:
        """``0/3 nodes are available: 3 Insufficient cpu (needs 2, most free 1500m on n1).``"""
        if self.obstacle and self.nodes:
            return f"0/{self.nodes} nodes are available: {self.obstacle}."
        told = available(self.fitting, self.nodes, self.filters)
        return f"{told} {self.reserved}" if self.reserved else told


def node_report(room: Room, record: PodRecord) -> NodeReport:
    """How ``record`` fares on all nodes as the books stand."""
    table = room.table
    nodes = int(np.count_nonzero(table.exists))
    obstacle = room.volumes.obstacle(record.shape.claims)
    if obstacle:
        return NodeReport(nodes, (), (), obstacle)
    counts, left = list(room.static.failing(record.shape.rules)), room.static.of(record.shape.rules).copy()
    rule = Reason.NO_NODE_MATCHES
    for phrase, mask in room.claim_book.masks(record.shape):
        before = len(counts)
        sieve(counts, phrase, left, mask)
        rule = Reason.DEVICES_MISSING if len(counts) > before else rule
    for phrase, mask in room.coupling_masks(record):
        sieve(counts, phrase, left, mask)
    if record.shape.devices.policy >= NumaPolicy.RESTRICTED:
        words = "have no named NUMA nodes, or another NUMA policy than the pod"
        sieve(counts, words, left, table.devices.agrees(record.shape.devices))
    short: list[Manifest] = []
    for name, need, phrase, mask in _while_any(left, _room_filters(room, record, left.copy())):
        before = len(counts)
        sieve(counts, phrase, left, mask)
        if len(counts) > before:
            short.append({"resource": name, "need": format_amount(name, need), "phrase": phrase})
    if (amplified := table.amplified(record.shape, ALL)) is not None:
        cpus = record.shape.devices.cpus
        words = f"have too little cpu for {cpus} CPUs of the pod's own, which count for more where cpu is amplified"
        sieve(counts, words, left, amplified > 0)
    for name, phrase, mask in _while_any(left, table.devices.filters(record.shape.devices, among=left)):
        before = len(counts)
        sieve(counts, phrase, left, mask)
        if len(counts) > before:
            short.append({"resource": name, "need": "", "phrase": phrase})
    before = len(counts)
    for words, mask in table.load.filters(record.shape, table.names):
        sieve(counts, words, left, mask)
    rule = Reason.NODES_TOO_BUSY if len(counts) > before else rule
    return NodeReport(nodes, tuple(counts), tuple(short), "", used_by(room, record), rule)


def too_large(room: Room, record: PodRecord) -> str:
    """Why no node could take the pod even if nothing ran there; "" when one could, or when no node matches at all."""
    view = room.view(record)
    if not view.mask.any() or view.largest_possible() > 0:
        return ""
    table, shape = room.table, record.shape
    parts, short = list[str](), list[str]()
    for name, row, need in zip(shape.requests, table.rows_for(shape), shape.needs, strict=True):
        most = np.where(view.mask, table.allocatable[row], -1)
        slot = _first_largest(most, table.rank())
        if most[slot] < need:
            have = format_amount(name, int(most[slot]))
            short.append(name)
            parts.append(
                f"{name} (needs {format_amount(name, shape.requests[name])}, the largest node {table.names[slot]} has {have})"
            )
    if not parts:
        counts, left = list[tuple[str, int]](), view.mask.copy()
        for _, phrase, mask in table.devices.filters(shape.devices, table.devices.have):
            sieve(counts, phrase, left, mask)
        if counts:
            words = "; ".join(f"{count} {_for_one(phrase) if count == 1 else phrase}" for phrase, count in counts)
            return f"pod {record.key.name} can never start: of the nodes that it may go to, even if they were empty, {words}"
        return f"pod {record.key.name} is too large for every node in one resource or another, so it can never start"
    end = f"so it cannot start {LENDS_MORE}" if all(map(is_lent, short)) else "so it can never start"
    return f"pod {record.key.name} is larger than every node in {' and '.join(parts)}, {end}"


def _room_filters(room: Room, record: PodRecord, left: Mask) -> Iterator[tuple[str, int, str, Mask]]:
    """Each resource of which some node that is ``left`` has too little."""
    table, shape = room.table, record.shape
    for (name, amount), row, need in zip(shape.requests.items(), table.rows_for(shape), shape.needs, strict=True):
        free = table.allocatable[row] - table.used[row]
        enough = free >= need
        if not (left > enough).any():
            continue
        free = np.maximum(free, 0)
        slot = _first_largest(np.where(left, free, -1), table.rank())
        where = f", most free {format_amount(name, int(free[slot]))} on {table.names[slot]}" if left.any() else ""
        yield name, amount, f"have too little {name} (needs {format_amount(name, amount)}{where})", enough


def _while_any(left: Mask, filters: Iterator[_T]) -> Iterator[_T]:
    """The filters as long as any node is left for them to take out."""
    while left.any() and (found := next(filters, None)) is not None:
        yield found


def _first_largest(amounts: Ints, rank: Ints) -> int:
    largest = np.flatnonzero(amounts == amounts.max())
    return int(largest[rank[largest].argmin()])


def _for_one(phrase: str) -> str:
    for many, one in (
        ("have ", "has "),
        ("are ", "is "),
        ("lack ", "lacks "),
        ("do not ", "does not "),
    ):
        if phrase.startswith(many):
            return one + phrase.removeprefix(many)
    return phrase
