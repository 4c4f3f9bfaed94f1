"""Wiring: settings → core → decider, and what it is told of the world → process."""

import json

from chassis import Decider
from chassis.process import Context, Parts, run
from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.images import Images
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.policy import AutoscalerPolicy
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.rules import RuleError
from inference_autoscaler.role import ROLE
from inference_autoscaler.settings import Settings
from inference_autoscaler.sources.work import collect
from kube import parse_duration


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    knative, routes = json.loads(settings.knative), json.loads(settings.routes)
    images = Images.of(json.loads(settings.images), settings.image_registry)
    policy = AutoscalerPolicy.of(knative, acts=settings.acts, left=settings.left, routes=routes, images=images)
    try:
        plan = SamplingPlan.of(json.loads(settings.sampling), triggers=policy.decides(SCALED_OBJECT))
    except (RuleError, json.JSONDecodeError) as error:
        raise SystemExit(f"sampling: {error}") from None
    decider = Decider(ROLE, lambda: AutoscalerCore(policy), context.workplace(settings.holder))

    def view() -> AutoscalerCore | None:
        """What the leader knows; None where another process leads."""
        return decider.deciding if isinstance(decider.deciding, AutoscalerCore) else None

    seconds = parse_duration(settings.source_timeout) / 1000
    samples = collect(plan, view, context, seconds)
    return Parts(tasks={"decider": decider.run(), "samples": samples}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("inference_autoscaler", Settings, build)


if __name__ == "__main__":
    main()
