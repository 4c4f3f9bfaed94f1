"""Wiring: settings → core → decider, and what it is told of the world → process."""

import json
from dataclasses import dataclass

from chassis import Decider
from chassis.process import Context, Parts, run
from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.policy import AutoscalerPolicy
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.rules import RuleError
from inference_autoscaler.role import ROLE
from inference_autoscaler.settings import Settings
from inference_autoscaler.sources.work import collect
from kube import parse_duration


@dataclass(slots=True)
class Leader:
    """The core of the present term, while this process leads and knows everything."""

    decider: Decider | None = None
    core: AutoscalerCore | None = None

    def view(self) -> AutoscalerCore | None:
        """The core, None while another process leads."""
        return self.core if self.decider is not None and self.decider.ready.is_set() else None


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    policy = AutoscalerPolicy.of(json.loads(settings.knative), acts=settings.acts)
    try:
        plan = SamplingPlan.of(json.loads(settings.sampling))
    except (RuleError, json.JSONDecodeError) as error:
        raise SystemExit(f"sampling: {error}") from None
    leader = Leader()

    def make_core() -> AutoscalerCore:
        leader.core = AutoscalerCore(policy)
        return leader.core

    leader.decider = Decider(ROLE, make_core, context.workplace(settings.holder))
    seconds = parse_duration(settings.source_timeout) / 1000
    return Parts(
        tasks={
            "decider": leader.decider.run(),
            "samples": collect(plan, leader.view, context.bus, context.clock.now, seconds),
        },
        ready=(leader.decider.ready,),
    )


def main() -> None:
    """Run the service until it is told to stop."""
    run("inference_autoscaler", Settings, build)


if __name__ == "__main__":
    main()
