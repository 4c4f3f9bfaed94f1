"""One attempt to start a gang, a bundle of gangs, or one more member of a gang that runs; and why it did not succeed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.gangs.fenced_start import FencedStart
from gang_scheduler.domain.gangs.gang import place_all, place_some
from gang_scheduler.domain.gangs.minimum import Candidates, candidates, first_choice
from gang_scheduler.domain.pods.groups import Group, is_lone_pod
from gang_scheduler.domain.pods.pod_record import PodRecord, requests_of
from gang_scheduler.domain.queues.queue_limits import Denial, denial_of
from gang_scheduler.domain.queues.quota_admission import beyond_grant
from gang_scheduler.domain.reasons.block import Block
from gang_scheduler.domain.reasons.domain_obstacles import DomainObstacles
from gang_scheduler.domain.reasons.refusals import Refusals
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.room.shape_view import NO_NODE
from gang_scheduler.domain.room.trial import Step, Trial


@dataclass(slots=True)
class Attempts:
    """Makes attempts on the books of ``room``; what succeeds stays placed on ``trial``."""

    room: Room
    trial: Trial
    _refusals: Refusals = field(init=False)
    _obstacles: DomainObstacles = field(init=False)

    def __post_init__(self) -> None:
        self._refusals = Refusals(self.room, self.trial)
        self._obstacles = DomainObstacles(self.trial)

    def start(self, groups: Sequence[Group]) -> Block | None:
        """Start the minima of ``groups``, none of which has started and all of which have enough members."""
        alone = is_lone_pod(groups)
        if alone and self._place_simply(next(iter(groups[0].pending.values()))):
            return None
        if any(group.fenced for group in groups):
            return None if self.starts(groups) else self._outside(groups)
        if alone:
            return self.add(groups[0], tuple(groups[0].pending.values()))
        found = [candidates(group) for group in groups]
        choices = [first_choice(item) for item in found]
        denial = self._denial(groups, choices)
        chosen = [record for choice in choices for record in choice]
        flexible = any(self._has_choice(choice, item) for choice, item in zip(choices, found, strict=True))
        who = " and ".join(f"{group.name}" for group in groups)
        if denial and not (flexible and not denial.never):
            return self._refusals.denied(denial, chosen, groups)
        if self._try_start(groups, found, chosen, denial, flexible):
            return None
        if denial:
            return self._refusals.denied(denial, chosen, groups)
        return self._refusals.unplaced(chosen, who, flexible)

    def add(self, group: Group, records: Sequence[PodRecord]) -> Block | None:
        """Bind one more member, or one more sub-group, of a gang that runs."""
        denial = beyond_grant(group, records) or self._denial([group], [records])
        if denial:
            return self._refusals.denied(denial, records, [group])
        if self._place(group, records):
            return None
        block = self._refusals.unplaced(records, group.name, flexible=False)
        return self._obstacles.later(group, records, block) if group.fenced else block

    def starts(self, groups: Sequence[Group]) -> bool:
        """Like ``start``, for whoever does not need to know why it fails."""
        if is_lone_pod(groups):
            return self.adds(groups[0], tuple(groups[0].pending.values()))
        if any(group.fenced for group in groups):
            mark = self.trial.checkpoint()
            if all(self._starts_fenced(group) for group in groups):
                return True
            self.trial.rollback(mark)
            return False
        found = [candidates(group) for group in groups]
        choices = [first_choice(item) for item in found]
        denial = self._denial(groups, choices)
        flexible = any(self._has_choice(choice, item) for choice, item in zip(choices, found, strict=True))
        if denial and (denial.never or not flexible):
            return False
        return self._try_start(groups, found, [record for choice in choices for record in choice], denial, flexible)

    def adds(self, group: Group, records: Sequence[PodRecord]) -> bool:
        """Like ``add``, for whoever does not need to know why it fails."""
        return self._denial([group], [records]) is None and self._place(group, records)

    def _place_simply(self, record: PodRecord) -> bool:
        """Place a pod that is a gang by itself and to which only its shape and its queue matter.

        That comes to the same as ``add``, for the many such pods. False says nothing about any other, nor why.
        """
        room = self.room
        if record.podset is not None or record.nominated:
            return False
        if room.coupled(record) or room.reserved.concerns(record):
            return False
        if denial_of(room.ledger, record.group.queue, record.form.shape.requests, ""):
            return False
        slot = room.view(record).best()
        if slot == NO_NODE:
            return False
        self.trial.place([record], slot)
        return True

    def _place(self, group: Group, records: Sequence[PodRecord]) -> bool:
        if not group.fenced:
            return self._placed_or_undone(lambda: place_all(self.trial, records) is None)
        fenced = FencedStart(self.trial)
        return fenced.inside(group, records, lambda: self._placed_or_undone(lambda: fenced.place(group, records)))

    def _placed_or_undone(self, place: Callable[[], bool]) -> bool:
        mark = self.trial.checkpoint()
        if place():
            return True
        self.trial.rollback(mark)
        return False

    def _starts_fenced(self, group: Group) -> bool:
        """Start one gang in the best domain that holds it: its first choice, then any other members."""
        found = candidates(group)
        chosen = first_choice(found)
        if self._denial([group], [chosen]):
            return False
        fenced = FencedStart(self.trial)
        plain = not any(policy.topology for policy in found.terms.sub_groups) and not chosen[0].podset
        flexible = plain and self._has_choice(chosen, found)

        def place() -> bool:
            if self._placed_or_undone(lambda: fenced.place(group, chosen)):
                return True
            return flexible and self._start_flexibly([group], [found])

        return fenced.inside(group, chosen, place, sure=not flexible)

    def _outside(self, groups: Sequence[Group]) -> Block:
        """Why no domain holds the gangs: what keeps them out everywhere, or that only no domain is large enough."""
        choices = [first_choice(candidates(group)) for group in groups]
        denial = self._denial(groups, choices)
        records = [record for choice in choices for record in choice]
        if denial:
            return self._refusals.denied(denial, records, groups)
        block = self._refusals.unplaced(records, " and ".join(group.name for group in groups), flexible=True)
        if block.hopeless:
            return block
        return self._obstacles.first(groups, choices, block)

    def _try_start(
        self,
        groups: Sequence[Group],
        found: Sequence[Candidates],
        chosen: Sequence[PodRecord],
        denial: Denial | None,
        flexible: bool,
    ) -> bool:
        """The first choice, then any other; leaves nothing placed where it fails."""
        if denial is None:
            mark = self.trial.checkpoint()
            if place_all(self.trial, chosen) is None:
                return True
            self.trial.rollback(mark)
        return flexible and self._start_flexibly(groups, found)

    def _has_choice(self, choice: Sequence[PodRecord], found: Candidates) -> bool:
        """Whether members of other kinds could take the place of the first choice."""
        if len(choice) >= found.count:
            return False
        return bool(found.sub_groups) or len({self.room.class_of(record) for record in found.free}) > 1

    def _start_flexibly(self, groups: Sequence[Group], found: Sequence[Candidates]) -> bool:
        """Like start, but any members that satisfy the minima will do; leaves nothing placed where it fails."""
        mark = self.trial.checkpoint()
        if all(self._place_minimum(item) for item in found):
            steps = self.trial.since(mark)
            self.trial.rollback(mark)
            placed = [[r for step in steps for r in step.records if r.group is group] for group in groups]
            if self._denial(groups, placed) is None:
                self._again(steps)
                return True
            return False
        self.trial.rollback(mark)
        return False

    def _place_minimum(self, found: Candidates) -> bool:
        terms, placed = found.terms, set[int]()
        sub_groups = [item for item in found.sub_groups if item.whole]
        for policy in terms.sub_groups:
            missing = policy.minimum
            for item in [item for item in sub_groups if item.policy is policy]:
                if missing and self._place_whole(item.whole, placed):
                    missing -= 1
                    sub_groups.remove(item)
            if missing:
                return False
        for role, least in terms.roles:
            self._place_free(found.of_role(role), least - self._of_role(found, placed, role), placed)
            for item in list(sub_groups):
                if self._of_role(found, placed, role) < least and self._place_whole(item.whole, placed):
                    sub_groups.remove(item)
            if self._of_role(found, placed, role) < least:
                return False
        self._place_free(found.free, terms.min_member - len(placed), placed)
        for item in sub_groups:
            if len(placed) < terms.min_member:
                self._place_whole(item.whole, placed)
        return len(placed) >= terms.min_member

    def _place_whole(self, records: Sequence[PodRecord], placed: set[int]) -> bool:
        mark = self.trial.checkpoint()
        if place_all(self.trial, records) is not None:
            self.trial.rollback(mark)
            return False
        placed.update(id(record) for record in records)
        return True

    def _place_free(self, records: Sequence[PodRecord], enough: int, placed: set[int]) -> None:
        rest = [record for record in records if record.slot < 0]
        if enough > 0:
            place_some(self.trial, rest, enough)
            placed.update(id(record) for record in rest if record.slot >= 0)

    def _of_role(self, found: Candidates, placed: set[int], role: str) -> int:
        members = [*found.free, *(record for item in found.sub_groups for record in item.waiting)]
        return sum(1 for record in members if id(record) in placed and record.role == role)

    def _again(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.trial.place(step.records, step.slot, step.reservation)

    def _denial(self, groups: Sequence[Group], choices: Sequence[Sequence[PodRecord]]) -> Denial | None:
        """Whether a queue forbids the choices, all of them together."""
        ledger, charged = self.room.ledger, []
        denial = None
        for group, choice in zip(groups, choices, strict=True):
            requests = requests_of(choice) if len(choice) != 1 else choice[0].shape.requests
            denial = denial_of(ledger, group.queue, requests, _title(group))
            if denial or len(groups) == 1:
                break
            ledger.charge(group.queue, requests, 1)
            charged.append((group.queue, requests))
        for queue, requests in charged:
            ledger.charge(queue, requests, -1)
        return denial


def _title(group: Group) -> str:
    if group.id.kind == "pod":
        return f"pod {group.name}"
    return f"job {group.name}"
