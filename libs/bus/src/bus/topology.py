"""The streams and buckets that Tidegate needs, declared once. `deploy/topology` holds the same as a document; a test compares."""

from dataclasses import dataclass

from nats.js.api import RetentionPolicy, StorageType, StreamConfig

MAX_PART_BYTES = 512 * 1024
"""What exceeds this is stored as an atomic batch of parts."""

LEASES = "TIDEGATE_LEASES"
SNAPSHOTS = "TIDEGATE_SNAPSHOTS"
VALUES = "TIDEGATE_VALUES"
DEAD = "TIDEGATE_DEAD"

DAY_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream. ``max_bytes`` and ``max_age_seconds`` of 0 mean no limit."""

    name: str
    subjects: tuple[str, ...]
    per_subject: int = -1
    max_bytes: int = -1
    max_age_seconds: int = 0
    replicas: int = 1

    def config(self) -> StreamConfig:
        return StreamConfig(
            name=self.name,
            subjects=list(self.subjects),
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            max_msgs_per_subject=self.per_subject,
            max_bytes=self.max_bytes,
            max_age=self.max_age_seconds,
            num_replicas=self.replicas,
            allow_direct=True,
            allow_atomic=True,
            duplicate_window=120,
        )


def stream_of_log(log: str) -> StreamSpec:
    """The stream behind a log: ``fact`` → FACTS, ``decision.gang_scheduler`` → DECISION_GANG_SCHEDULER."""
    name = "FACTS" if log == "fact" else log.replace(".", "_").upper()
    subject = f"tidegate.{log}"
    return StreamSpec(name, (subject, f"{subject}.topic.*"))


LAST_VALUES = StreamSpec(VALUES, ("tidegate.assignment.*",), per_subject=1)
DEAD_MESSAGES = StreamSpec(DEAD, ("tidegate.dead.*",), max_bytes=64 * 1024 * 1024, max_age_seconds=30 * DAY_SECONDS)
