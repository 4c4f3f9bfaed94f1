"""What this service is asked to do: the arguments of its strategies, how gently, and how often."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from descheduler.domain.policy.arguments import optional_count
from descheduler.domain.policy.load_args import LoadArgs
from descheduler.domain.policy.migration_args import MigrationArgs
from descheduler.domain.policy.strategy_args import StrategyArgs, read_strategies
from kube import Manifest

INTERVAL_MS = 120_000
_LIMITS = ("maxNoOfPodsToEvictTotal", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace")
_OWN = ("migration", "strategies", "intervalSeconds", "planOnly", *_LIMITS)


@dataclass(frozen=True, slots=True)
class DeschedulerPolicy:
    """``plan_only`` makes plans and moves nothing by them. The limits are of pods in one round; None is no limit."""

    load: LoadArgs = field(default_factory=LoadArgs)
    migration: MigrationArgs = field(default_factory=MigrationArgs)
    strategies: Mapping[str, StrategyArgs] = field(default_factory=dict)
    interval_ms: int = INTERVAL_MS
    plan_only: bool = False
    total: int | None = None
    per_node: int | None = None
    per_namespace: int | None = None
    given: Manifest = field(default_factory=dict)
    """What it was made from."""

    @property
    def only_plans(self) -> bool:
        """Whether nothing becomes of any plan."""
        return self.plan_only or self.migration.dry_run

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was given and has no effect, in sentences."""
        return (*self.load.warnings, *self.migration.warnings)

    @classmethod
    def of(cls, given: Manifest) -> "DeschedulerPolicy":
        """Keys of LowNodeLoadArgs, and beside them ``migration``, ``strategies`` and this service's own.

        Raises ValueError for what there is not, or cannot be read.
        """
        migration = given.get("migration") or {}
        seconds = int(given.get("intervalSeconds", INTERVAL_MS // 1000))
        if seconds <= 0:
            raise ValueError(f"intervalSeconds is {seconds}, which is not above 0")
        return cls(
            LoadArgs.of({name: value for name, value in given.items() if name not in _OWN}),
            MigrationArgs.of(migration),
            read_strategies(given.get("strategies") or {}),
            1000 * seconds,
            bool(given.get("planOnly", False)),
            optional_count(given.get("maxNoOfPodsToEvictTotal")),
            optional_count(given.get("maxNoOfPodsToEvictPerNode")),
            optional_count(given.get("maxNoOfPodsToEvictPerNamespace")),
            given,
        )
