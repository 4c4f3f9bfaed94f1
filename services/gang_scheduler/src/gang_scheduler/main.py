"""Wiring: settings → core → decider → process."""

from chassis import Decider
from chassis.process import Context, Parts, run
from gang_scheduler.domain.core import SERVED, SchedulerCore
from gang_scheduler.domain.terms.load_policy import LoadPolicy
from gang_scheduler.kernels import BackgroundKernels
from gang_scheduler.role import ROLE
from gang_scheduler.settings import Settings


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    kernels = BackgroundKernels()
    decider = Decider(
        ROLE,
        lambda: SchedulerCore(
            schedulers=settings.schedulers() or SERVED,
            placement=settings.placement,
            preemption=settings.preemption,
            reclaim=settings.reclaim,
            backfill=settings.backfill,
            gang_eviction=settings.gang_eviction,
            strict_fifo=settings.strict_fifo,
            fifo=settings.fifo,
            load=LoadPolicy.of(settings.load_arguments()),
            revocable_zones=settings.revocable_zones,
            told_after_ms=settings.told_after_ms,
            kernels=kernels,
        ),
        context.workplace(settings.holder),
    )
    return Parts(tasks={"decider": decider.run()}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("gang_scheduler", Settings, build)


if __name__ == "__main__":
    main()
