"""Why an attempt failed, and what has to happen before the next one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.gangs.gang import place_some
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.queues.queue_limits import Denial
from gang_scheduler.domain.reasons.block import ANYTHING, OWN_CHANGE, Block, Wake
from gang_scheduler.domain.reasons.explain import Explanation, NodeReport, Reason, node_report, too_large
from gang_scheduler.domain.room.room import PodClass, Room
from gang_scheduler.domain.room.trial import Trial
from kube.words import verb


@dataclass(slots=True)
class Refusals:
    """Puts reasons into words, looking at the books of ``room`` as they are."""

    room: Room
    trial: Trial
    _reports: dict[PodClass, NodeReport] = field(default_factory=dict)
    _reports_at: tuple[int, int] = (0, 0)

    def denied(self, denial: Denial, records: Sequence[PodRecord], groups: Sequence[Group]) -> Block:
        """Its queue does not allow it."""
        # A pod larger than every node is told that first: it is what its owner can change.
        large = next((text for record in _one_of_each(records) if (text := too_large(self.room, record))), "")
        if large:
            return self._never(large, Wake(queue=denial.queue))
        detail = {"queue": denial.queue or groups[0].queue}
        return Block(Explanation(Reason(denial.reason), denial.message, detail), Wake(queue=denial.queue), denial.never)

    def unplaced(self, records: Sequence[PodRecord], who: str, flexible: bool) -> Block:
        """There is no room. ``flexible``: others might be placed instead of some of ``records``."""
        for record in records:
            if record.shape.broken:
                message = f"the requests of pod {record.key.name} cannot be read: {record.shape.broken}"
                return Block(Explanation(Reason.BAD_REQUESTS, message), ANYTHING, hopeless=True)
            if record.shape.unmet:
                message = f"pod {record.key.name} waits for its runtime class: {record.shape.unmet}"
                return Block(Explanation(Reason.RUNTIME_CLASS, message), OWN_CHANGE, hopeless=True)
        if not flexible:
            for record in _one_of_each(records):
                if self.room.volumes.obstacle(record.shape.claims):
                    # A change of the claim is one of the gang: nothing else can help.
                    report = self._report(record)
                    return Block(Explanation(report.reason, report.sentence()), OWN_CHANGE)
        wake = self._wake(records, flexible)
        for record in _one_of_each(records) if not flexible else ():
            if large := too_large(self.room, record):
                report = self._report(record)
                detail = {"filters": dict(report.filters), "pod": record.key.name, "needed": len(records)}
                return Block(
                    Explanation(Reason.NEVER_FITS, f"{report.sentence()} {large}", detail), wake, hopeless=True
                )
        mark = self.trial.checkpoint()
        if len(records) > 1:
            for record in _one_of_each(records):
                place_some(self.trial, [item for item in records if item.shape is record.shape], len(records))
        failed = next((record for record in records if record.slot < 0), records[0])
        placed = sum(1 for record in records if record.slot >= 0)
        report = self._report(failed)
        self.trial.rollback(mark)
        block = self._words(records, who, failed, placed, report, wake)
        if report.reason is Reason.DEVICES_MISSING and not self.room.claim_book.possible(failed.shape):
            # Nobody's leaving helps: room is neither made nor reserved for it.
            return block._replace(hopeless=True)
        return block

    def _words(
        self, records: Sequence[PodRecord], who: str, failed: PodRecord, placed: int, report: NodeReport, wake: Wake
    ) -> Block:
        sentence = report.sentence()
        detail = {
            "filters": dict(report.filters),
            "short": list(report.short),
            "pod": failed.key.name,
            "placed": placed,
            "needed": len(records),
        }
        if len(records) == 1:
            return Block(Explanation(report.reason, sentence, detail), wake)
        fit = f"{placed} of {len(records)} members of {who} {verb(placed, 'fits', 'fit')}"
        message = f"{sentence} {fit}, {len(records)} are needed at once"
        if len(_one_of_each(records)) > 1:
            message += f"; the next one is {failed.key.name}"
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
            if self.room.reserved.concerns(record):
                return ANYTHING
            if self.room.view(record).total < need:
                return Wake(record.shape, need)
        return ANYTHING

    def _report(self, record: PodRecord) -> NodeReport:
        """The report on a pod; those of one class share it while nothing changes."""
        now = (self.room.table.room.end, self.room.table.rules.end)
        if now != self._reports_at:
            self._reports.clear()
            self._reports_at = now
        if self.room.reserved.by_name:
            # Which reservations are told of depends on the pod itself.
            return node_report(self.room, record)
        kind = self.room.class_of(record)
        if kind not in self._reports:
            self._reports[kind] = node_report(self.room, record)
        return self._reports[kind]


def _one_of_each(records: Sequence[PodRecord]) -> list[PodRecord]:
    return list({record.shape.index: record for record in reversed(records)}.values())[::-1]
