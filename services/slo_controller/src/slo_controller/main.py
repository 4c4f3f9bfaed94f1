"""Wiring: settings → core → decider → process."""

import json

from chassis import Decider
from chassis.process import Context, Parts, run
from slo_controller.domain.core import SloCore
from slo_controller.domain.policy import SloPolicy
from slo_controller.role import ROLE
from slo_controller.settings import Settings


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    policy = SloPolicy.of(json.loads(settings.colocation), json.loads(settings.node_slo))
    decider = Decider(ROLE, lambda: SloCore(policy), context.workplace(settings.holder))
    return Parts(tasks={"decider": decider.run()}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("slo_controller", Settings, build)


if __name__ == "__main__":
    main()
