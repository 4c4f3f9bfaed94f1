"""Why an InferenceService has the replicas that it has, in lines for people."""

from collections.abc import Iterator

from inference_autoscaler.domain.cluster.scale import scale_of
from inference_autoscaler.domain.serving.children import COMPONENT
from inference_autoscaler.domain.serving.component import PREDICTOR
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.goals import aim_in_mode, fleet_of
from inference_autoscaler.domain.serving.inference_service import STANDARD, Inference
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.surroundings import Surroundings
from inference_autoscaler.domain.target.aim import Aim
from inference_autoscaler.domain.target.outlook import outlook
from kube import Manifest, Object, rfc3339

_DEPLOYMENT = "Deployment.apps"


def explained(
    item: Object, spec: Inference, found: Outlook, course: Course, around: Surroundings, now: int
) -> Manifest:
    """What a look came to that nobody acts on. ``course`` is a copy that it was made with."""
    answer: Manifest = {"found": True, "verdict": "Sized", "message": "", "sizes": found.reasons, "lines": []}
    if found.trouble or found.stopped:
        words = found.trouble or "it is stopped: the annotation serving.kserve.io/stop says so"
        return {**answer, "verdict": found.reason if found.trouble else "Stopped", "message": words}
    aim, decided = aim_in_mode(spec, around.configuration), found.goal
    if decided is not None and decided[0] != "True":
        answer["verdict"], answer["message"] = decided[1:]
    elif not found.reasons and spec.mode == STANDARD:
        answer["message"] = (
            f"sized by others (autoscalerClass {spec.scaled_by}); what these say follows where they are ours"
        )
    lines = [*found.reasons, *_panics(course)]
    if aim is not None and course.pursuit is not None:
        lines = [*_goals(item, aim, found, course, around, now)]
    return {**answer, "lines": lines}


def _goals(item: Object, aim: Aim, found: Outlook, course: Course, around: Surroundings, now: int) -> Iterator[str]:
    """Of each Deployment of the predictor that has a part of the requests, and others in a line."""
    rollout, own = found.standings[PREDICTOR].rollout, set[str]()
    for child in sorted(around.store.owned_by(item.uid), key=lambda one: one.name):
        scale = scale_of(child) if child.kind == _DEPLOYMENT and child.labels.get(COMPONENT) == PREDICTOR else None
        if scale is None or course.pursuit is None:
            continue
        name = child.name.removesuffix("-deployment")
        percent = rollout.split.get(name, 0) if rollout is not None else 100
        own.add(name)
        yield f"{name}: {scale.wanted} replicas for {percent} % of the requests"
        if percent:
            fleet = fleet_of(course.pursuit, scale, around.pods, now)
            yield from (f"  {line}" for line in outlook(course.pursuit, aim, fleet, percent, now))
    yield from (one for one in found.reasons if one.partition(" ")[0] not in own)


def _panics(course: Course) -> Iterator[str]:
    for name, past in sorted(course.pasts.items()):
        if past.panic.since is not None:
            yield f"{name} is in panic since {rfc3339(past.panic.since)}: nothing is taken away before that is over"
        if past.life.idle_since is not None:
            yield f"{name} has had nothing to do since {rfc3339(past.life.idle_since)}, and is about to sleep"
