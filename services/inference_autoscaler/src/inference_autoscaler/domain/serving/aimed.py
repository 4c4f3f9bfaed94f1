"""Sizes in standard mode of a predictor that states a goal: its own, and those of its canaries, in the place of an autoscaler's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.serving.canaries import Sized
from inference_autoscaler.domain.serving.children import component_name
from inference_autoscaler.domain.serving.component import Component
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.goals import planned, pursue, standard_aim, standing
from inference_autoscaler.domain.serving.inference_service import Inference
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.rollout import ALL
from inference_autoscaler.domain.serving.surroundings import Surroundings
from inference_autoscaler.domain.target.aim import CAME, IN_FLIGHT, Aim
from kube import Key, Object

_DEPLOYMENT = "Deployment.apps"
_KEPT_MS = 60_000
"""How long samples are kept that have been taken into the past of the goal."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The size that a Deployment is to have, and why."""

    replicas: int
    why: str


class Aimed:
    """The goal of a service in standard mode; where there is none, or it is not sized here, no size is chosen."""

    def __init__(
        self, found: Outlook, item: Object, spec: Inference, course: Course, around: Surroundings, now: int
    ) -> None:
        """Take in what came. Raises ValueError for a goal that makes no sense."""
        self._item, self._course, self._around, self._now = item, course, around, now
        self._aim: Aim | None = standard_aim(spec, around.configuration)
        parts = [spec.predictor, *(canary.component for canary in spec.canaries)]
        scales = [scale for one in parts if (scale := self._scale(component_name(item, one))) is not None]
        pursue(self._aim, course, scales, around.pods)
        found.goal = standing(spec, self._aim, course, scales, now)
        found.is_awake |= self._aim is not None
        course.forget(now - _KEPT_MS, {CAME, IN_FLIGHT})

    @property
    def decides(self) -> bool:
        """Whether the goal has the sizes, so that no autoscaler may."""
        return self._aim is not None

    def size(self, component: Component, percent: int) -> Chosen | None:
        """What the Deployment of ``component`` is to have that gets so many percent of the requests; None where no goal decides."""
        scale = self._scale(component_name(self._item, component))
        if self._aim is None or self._course.pursuit is None or scale is None:
            return None
        wish = planned(self._aim, self._course.pursuit, scale, self._around.pods, percent, self._now)
        least = max(1, component.minimum)
        wanted = max(least, scale.wanted if wish is None else wish.pods)
        if component.maximum:
            wanted = min(wanted, max(least, component.maximum))
        return Chosen(wanted, wish.why if wish is not None else "its bounds")

    def canary(self, one: Sized) -> Sized:
        """With the pods that its share of the requests needs; one that was taken back needs none."""
        found = self.size(one.component, one.percent) if one.replicas else None
        return one if found is None else replace(one, replicas=max(one.replicas, found.replicas))

    def _scale(self, name: str) -> Scale | None:
        return scale_of(self._around.store.get(Key(_DEPLOYMENT, self._item.namespace, name)))


def rest(canaries: Sequence[Sized]) -> int:
    """The percentage of the requests that canaries leave."""
    return ALL - sum(canary.percent for canary in canaries if canary.serving)
