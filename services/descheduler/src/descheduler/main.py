"""Wiring: settings → core → decider → process."""

import json
import logging

from chassis import Decider
from chassis.process import Context, Parts, run
from descheduler.domain.core import DeschedulerCore
from descheduler.domain.policy.policy import DeschedulerPolicy
from descheduler.role import ROLE
from descheduler.settings import Settings

log = logging.getLogger(__name__)


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    policy = DeschedulerPolicy.of(
        {
            **json.loads(settings.low_node_load),
            "migration": json.loads(settings.migration),
            "strategies": json.loads(settings.strategies),
            "intervalSeconds": settings.interval_seconds,
            "planOnly": settings.dry_run,
        }
    )
    for warning in policy.warnings:
        log.warning("setting_without_effect", extra={"detail": warning})
    decider = Decider(ROLE, lambda: DeschedulerCore(policy), context.workplace(settings.holder))
    return Parts(tasks={"decider": decider.run()}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("descheduler", Settings, build)


if __name__ == "__main__":
    main()
