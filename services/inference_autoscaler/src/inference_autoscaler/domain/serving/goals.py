"""Services that state what their users should feel: what is learned of them, and what a part of one needs."""

from collections.abc import Sequence

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale
from inference_autoscaler.domain.knative.decider import Wish
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.target.aim import CAME, IN_FLIGHT, Aim, Pursuit
from inference_autoscaler.domain.target.plan import Fleet


def pursue(aim: Aim | None, course: Course, scales: Sequence[Scale], pods: PodIndex) -> None:
    """Take in how the pods of a service started and what it bore, where it has a goal."""
    if aim is None:
        course.pursuit = None
        return
    course.pursuit = course.pursuit or Pursuit()
    for scale in scales:
        course.pursuit.starts.learn(pods.selected(scale.item.namespace, scale.selector))
    course.pursuit.hear(aim, course.load(CAME), course.load(IN_FLIGHT), course.born, sum(map(_serving, scales)))


def planned(aim: Aim, pursuit: Pursuit, scale: Scale, pods: PodIndex, percent: int, now: int) -> Wish | None:
    """What is wanted of one Deployment that gets so many percent of the requests; None while nothing is known: it stays as it is."""
    ready, own = _serving(scale), pods.selected(scale.item.namespace, scale.selector)
    etas = pursuit.starts.etas(own, scale.wanted, ready, now)
    found = pursuit.plan(aim, Fleet(scale.wanted, ready, etas), percent, now)
    return Wish(found.pods, found.why) if found is not None else None


def _serving(scale: Scale) -> int:
    return int(scale.item.status.get("availableReplicas") or 0)
