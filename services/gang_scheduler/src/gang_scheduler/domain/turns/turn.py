"""A unit in a pass: what of it has found a place, and why the rest has not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.evictions.evictor import Plan
from gang_scheduler.domain.gangs.minimum import candidates, lack_beside_running, shortage, shortage_of_role
from gang_scheduler.domain.gangs.portions import Portion
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import Group, is_lone_pod
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.reasons.block import ANYTHING, OWN_CHANGE, Block, Wake
from gang_scheduler.domain.reasons.explain import Explanation, Reason
from gang_scheduler.domain.room.room import PodClass
from gang_scheduler.domain.room.trial import Step
from gang_scheduler.domain.turns.backfill import Place


@dataclass(slots=True, eq=False)
class Turn:
    """A unit in a pass. ``block`` is the first reason why something of it found no place."""

    unit: Unit
    groups: list[Group]
    block: Block | None = None
    blocked: list[PodRecord] = field(default_factory=list)
    started: list[Group] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rest: dict[Group, list[Portion]] = field(default_factory=dict)
    failed: set[PodClass] = field(default_factory=set)
    refused: Portion | None = None
    """The first portion that found no place."""

    place: Place | None = None
    """Where it stood in its queue when its minimum was tried last."""

    conceivable: bool = False
    """Whether others might be evicted for it one day: then any change may help."""

    plan: Plan | None = None
    """Who is to be evicted so that the unit can start."""

    alone: bool = field(init=False)
    """Whether it is a pod that is a gang by itself."""

    def __post_init__(self) -> None:
        self.alone = is_lone_pod(self.groups)

    def expect(self, plan: Plan, message: str) -> None:
        """Note that room is being freed for the unit; that is what is told."""
        self.plan = plan
        self.block = Block(Explanation(Reason.ROOM_BEING_FREED, message), ANYTHING)

    def refuse(self, block: Block, records: Iterable[PodRecord]) -> None:
        """Note why ``records`` found no place; the first reason is the one that is told."""
        self.block = self.block or block
        self.blocked.extend(records)


def incomplete(turn: Turn) -> Block | None:
    """Why a unit cannot be tried at all: members, groups or the leave of a queue are missing."""
    if turn.alone and turn.groups[0].let_in:
        return None
    present = {group.id for group in turn.groups}
    name = turn.unit[0].name
    for gang in turn.unit:
        if gang not in present:
            return waits(
                Reason.BUNDLE_INCOMPLETE,
                f"gang {gang.namespace}/{gang.title} of the bundle of {name} does not exist",
            )
    for group in turn.groups:
        if group.terms is None:
            return waits(Reason.GROUP_MISSING, f"PodGroup {group.id.namespace}/{group.name} does not exist")
        if not group.let_in:
            return waits(
                Reason.BUNDLE_INCOMPLETE,
                f"gang {group.name} of the bundle has not been let in by queue {group.queue}",
            )
        if group.id.kind == "pod":
            continue
        lack = _lack(group)
        if lack is not None:
            return waits(*lack)
    return None


def _lack(group: Group) -> tuple[Reason, str] | None:
    """Which members are missing; what is said of a role goes first, as in Volcano."""
    if group.open:
        text = lack_beside_running(group)
        return (Reason.NOT_ENOUGH_PODS, text) if text else None
    found = candidates(group)
    text = shortage_of_role(group, found)
    if text:
        return Reason.NOT_ENOUGH_OF_ROLE, text
    text = shortage(group, found)
    return (Reason.NOT_ENOUGH_PODS, text) if text else None


def expectation(turn: Turn, victims: int) -> str:
    """What a unit is told for which room is being freed."""
    who = " and ".join(group.name for group in turn.groups)
    if victims:
        return f"room for {who} is kept until {victims} evicted {'pod has' if victims == 1 else 'pods have'} left it"
    return f"room for {who} is kept until the pods that are leaving have left it"


def waits(reason: Reason, message: str, wake: Wake = OWN_CHANGE) -> Block:
    """A reason to wait that is found without trying."""
    return Block(Explanation(reason, message), wake)


def wake_of(turn: Turn, classes: Sequence[PodClass]) -> Wake:
    """What a unit waits for: with several kinds of waiting members anything may help."""
    assert turn.block is not None
    if turn.conceivable and not turn.block.wake.own:
        return ANYTHING
    return turn.block.wake if len(classes) <= 1 or not turn.failed else ANYTHING
