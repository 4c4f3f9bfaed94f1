"""One attempt to start a gang, a bundle of gangs, or one more member of a gang that runs; and why it did not succeed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.block import ANYTHING, Block, Wake
from gang_scheduler.domain.explain import Explanation, NodeReport, Reason, node_report, too_large
from gang_scheduler.domain.gang import place_all, place_some
from gang_scheduler.domain.groups import Group
from gang_scheduler.domain.minimum import Candidates, candidates, first_choice
from gang_scheduler.domain.pod_record import PodRecord
from gang_scheduler.domain.queue_ledger import Denial, total_of
from gang_scheduler.domain.quota_admission import beyond_grant
from gang_scheduler.domain.room import PodClass, Room
from gang_scheduler.domain.trial import Step, Trial


@dataclass(slots=True)
class Attempts:
    """Makes attempts on the books of ``room``; what succeeds stays placed on ``trial``."""

    room: Room
    trial: Trial
    _reports: dict[PodClass, NodeReport] = field(default_factory=dict)
    _reports_at: tuple[int, int] = (0, 0)

    def start(self, groups: Sequence[Group]) -> Block | None:
        """Start the minima of ``groups``, none of which has started and all of which have enough members."""
        if len(groups) == 1 and groups[0].id.kind == "pod":
            return self.add(groups[0], tuple(groups[0].pending.values()))
        found = [candidates(group) for group in groups]
        choices = [first_choice(item) for item in found]
        denial = self._denial(groups, choices)
        chosen = [record for choice in choices for record in choice]
        flexible = any(self._has_choice(choice, item) for choice, item in zip(choices, found, strict=True))
        who = " and ".join(f"{group.name}" for group in groups)
        if denial and not (flexible and not denial.never):
            return self._denied(denial, chosen, groups)
        if self._try_start(groups, found, chosen, denial, flexible):
            return None
        if denial:
            return self._denied(denial, chosen, groups)
        return self._unplaced(chosen, who, flexible)

    def add(self, group: Group, records: Sequence[PodRecord]) -> Block | None:
        """Bind one more member, or one more sub-group, of a gang that runs."""
        denial = beyond_grant(group, records) or self._denial([group], [list(records)])
        if denial:
            return self._denied(denial, records, [group])
        mark = self.trial.checkpoint()
        if place_all(self.trial, records) is None:
            return None
        self.trial.rollback(mark)
        return self._unplaced(records, group.name, flexible=False)

    def starts(self, groups: Sequence[Group]) -> bool:
        """Like ``start``, for whoever does not need to know why it fails."""
        if len(groups) == 1 and groups[0].id.kind == "pod":
            return self.adds(groups[0], tuple(groups[0].pending.values()))
        found = [candidates(group) for group in groups]
        choices = [first_choice(item) for item in found]
        denial = self._denial(groups, choices)
        flexible = any(self._has_choice(choice, item) for choice, item in zip(choices, found, strict=True))
        if denial and (denial.never or not flexible):
            return False
        return self._try_start(groups, found, [record for choice in choices for record in choice], denial, flexible)

    def adds(self, group: Group, records: Sequence[PodRecord]) -> bool:
        """Like ``add``, for whoever does not need to know why it fails."""
        if self._denial([group], [list(records)]):
            return False
        mark = self.trial.checkpoint()
        if place_all(self.trial, records) is None:
            return True
        self.trial.rollback(mark)
        return False

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
            self.trial.place(step.records, step.slot)

    def _denial(self, groups: Sequence[Group], choices: Sequence[Sequence[PodRecord]]) -> Denial | None:
        """Whether a queue forbids the choices, all of them together."""
        ledger, charged = self.room.ledger, []
        denial = None
        for group, choice in zip(groups, choices, strict=True):
            requests = (
                total_of((record.shape.requests, 1) for record in choice)
                if len(choice) != 1
                else choice[0].shape.requests
            )
            denial = ledger.denies(group.queue, requests, _title(group))
            if denial or len(groups) == 1:
                break
            ledger.charge(group.queue, requests, 1)
            charged.append((group.queue, requests))
        for queue, requests in charged:
            ledger.charge(queue, requests, -1)
        return denial

    def _denied(self, denial: Denial, records: Sequence[PodRecord], groups: Sequence[Group]) -> Block:
        # A pod larger than every node is told that first: it is what its owner can change.
        large = next((text for record in _one_of_each(records) if (text := too_large(self.room, record))), "")
        if large:
            return self._never(large, Wake(queue=denial.queue))
        detail = {"queue": denial.queue or groups[0].queue}
        return Block(Explanation(Reason(denial.reason), denial.message, detail), Wake(queue=denial.queue), denial.never)

    def _unplaced(self, records: Sequence[PodRecord], who: str, flexible: bool) -> Block:
        for record in records:
            if record.shape.broken:
                message = f"the requests of pod {record.key.name} cannot be read: {record.shape.broken}"
                return Block(Explanation(Reason.BAD_REQUESTS, message), ANYTHING, hopeless=True)
        wake = self._wake(records, flexible)
        large = next((text for record in _one_of_each(records) if (text := too_large(self.room, record))), "")
        if large and not flexible:
            return self._never(large, wake)
        mark = self.trial.checkpoint()
        if len(records) > 1:
            for record in _one_of_each(records):
                place_some(self.trial, [item for item in records if item.shape is record.shape], len(records))
        failed = next((record for record in records if record.slot < 0), records[0])
        placed = sum(1 for record in records if record.slot >= 0)
        report = self._report(failed)
        self.trial.rollback(mark)
        return self._words(records, who, failed, placed, report, wake)

    def _words(
        self, records: Sequence[PodRecord], who: str, failed: PodRecord, placed: int, report: NodeReport, wake: Wake
    ) -> Block:
        sentence = report.sentence(failed.key.name)
        detail = {
            "filters": dict(report.filters),
            "short": list(report.short),
            "pod": failed.key.name,
            "placed": placed,
            "needed": len(records),
        }
        if len(records) == 1:
            return Block(Explanation(report.reason, sentence, detail), wake)
        message = f"{placed} of {len(records)} members of {who} fit, {len(records)} are needed at once; for the next one: {sentence}"
        possible = sum(self.room.view(record).largest_possible() for record in _one_of_each(records))
        if 0 < possible < len(records):
            message += f"; all nodes together could hold {possible} if they were empty, so it can never start"
            return Block(Explanation(Reason.NEVER_FITS, message, detail), wake, hopeless=True)
        return Block(Explanation(report.reason, message, detail), wake)

    def _never(self, message: str, wake: Wake) -> Block:
        return Block(Explanation(Reason.NEVER_FITS, message), wake, hopeless=True)

    def _wake(self, records: Sequence[PodRecord], flexible: bool) -> Wake:
        """The places that are certainly missing, of the shape that misses most."""
        if flexible:
            return ANYTHING
        needs: dict[int, int] = {}
        for record in records:
            needs[record.shape.index] = needs.get(record.shape.index, 0) + 1
        for record in _one_of_each(records):
            need = needs[record.shape.index]
            if self.room.view(record).total < need:
                return Wake(record.shape, need)
        return ANYTHING

    def _report(self, record: PodRecord) -> NodeReport:
        """The report on a pod; those of one class share it while nothing changes."""
        now = (self.room.table.room.end, self.room.table.rules.end)
        if now != self._reports_at:
            self._reports.clear()
            self._reports_at = now
        kind = self.room.class_of(record)
        if kind not in self._reports:
            self._reports[kind] = node_report(self.room, record)
        return self._reports[kind]


def _one_of_each(records: Sequence[PodRecord]) -> list[PodRecord]:
    return list({record.shape.index: record for record in reversed(records)}.values())[::-1]


def _title(group: Group) -> str:
    if group.id.kind == "pod":
        return f"pod {group.name}"
    return f"job {group.name}"
