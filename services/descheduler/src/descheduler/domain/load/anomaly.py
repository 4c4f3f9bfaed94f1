"""Whether a node is hot for long: one that was so for a moment is left alone."""

from dataclasses import asdict, dataclass, field, replace

from descheduler.domain.policy.load_args import AnomalyCondition
from kube import Manifest


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """Rounds in a row; ``since`` is when it was found to be hot for long, 0 while it was not; ``seen`` the last round."""

    abnormal: int = 0
    normal: int = 0
    since: int = 0
    seen: int = 0


@dataclass(slots=True)
class AnomalyRecords:
    """What the rounds before have seen, by pool and node: the only thing that is remembered, as no fact tells it."""

    records: dict[str, NodeRecord] = field(default_factory=dict)

    def mark(self, place: str, hot: bool, condition: AnomalyCondition, now: int) -> bool:
        """Take one round of a node; whether it has been hot for long enough."""
        before = self.records.get(place, NodeRecord())
        record = replace(
            before,
            abnormal=before.abnormal + 1 if hot else 0,
            normal=0 if hot else before.normal + 1,
            seen=now,
        )
        if not record.since and _is_long(record, condition):
            record = replace(record, since=now)
        elif record.since and not hot and _is_over(record, condition, now):
            record = replace(record, since=0)
        self._keep(place, record)
        return hot and record.since > 0

    def reset(self, place: str) -> None:
        """The node was relieved: what it does next counts anew."""
        self.records.pop(place, None)

    def forget_before(self, moment: int) -> None:
        """Drop what was not seen since ``moment``."""
        self.records = {place: record for place, record in self.records.items() if record.seen >= moment}

    def _keep(self, place: str, record: NodeRecord) -> None:
        if record.abnormal or record.since:
            self.records[place] = record
        else:
            self.records.pop(place, None)

    def manifest(self) -> Manifest:
        """The records as data."""
        return {place: asdict(record) for place, record in sorted(self.records.items())}

    @classmethod
    def of(cls, given: Manifest) -> "AnomalyRecords":
        """The records of ``manifest``."""
        return cls({place: NodeRecord(**record) for place, record in given.items()})


def _is_long(record: NodeRecord, condition: AnomalyCondition) -> bool:
    """One round is enough where one is asked for; else it has to be more of them than are borne."""
    if condition.abnormal <= 1:
        return record.abnormal >= 1
    return record.abnormal > condition.abnormal


def _is_over(record: NodeRecord, condition: AnomalyCondition, now: int) -> bool:
    return record.normal > condition.normal or now - record.since >= condition.timeout_ms
