"""Wiring: settings → core → decider → process."""

import json

from chassis import Decider
from chassis.process import Context, Parts, run
from queue_manager.domain.core import QueueCore
from queue_manager.domain.policy import QueuePolicy
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from queue_manager.role import ROLE
from queue_manager.settings import Settings


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    kueue = KueuePolicy.of(json.loads(settings.kueue))
    policy = QueuePolicy(
        settings.overcommit or None,
        settings.queueing,
        settings.strict_fifo,
        settings.fair_sharing,
        settings.fifo,
        kueue,
    )
    decider = Decider(ROLE, lambda: QueueCore(policy), context.workplace(settings.holder))
    return Parts(tasks={"decider": decider.run()}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("queue_manager", Settings, build)


if __name__ == "__main__":
    main()
