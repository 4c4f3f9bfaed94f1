"""Wiring: settings → core → decider → process."""

import json

from chassis import Decider
from chassis.process import Context, Parts, run
from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.policy import AutoscalerPolicy
from inference_autoscaler.role import ROLE
from inference_autoscaler.settings import Settings


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    policy = AutoscalerPolicy.of(json.loads(settings.knative), acts=settings.acts)
    decider = Decider(ROLE, lambda: AutoscalerCore(policy), context.workplace(settings.holder))
    return Parts(tasks={"decider": decider.run()}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("inference_autoscaler", Settings, build)


if __name__ == "__main__":
    main()
