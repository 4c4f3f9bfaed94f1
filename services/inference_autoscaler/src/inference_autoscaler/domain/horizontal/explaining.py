"""What a look at a HorizontalPodAutoscaler would come to, in data and in lines for people."""

from collections.abc import Iterator

from inference_autoscaler.domain.cluster.scale import Scale
from inference_autoscaler.domain.horizontal.pod_classes import Roster
from inference_autoscaler.domain.horizontal.spec import Horizontal
from inference_autoscaler.domain.horizontal.verdict import ABLE, Verdict
from kube import Manifest

_PLAIN = ("SucceededGetScale", "SucceededRescale", "ReadyForNewScale")


def explained(verdict: Verdict, spec: Horizontal, scale: Scale, roster: Roster) -> Manifest:
    """``message`` is the reason for a new size; ``lines`` say what asks for how many, and what holds the size or bounds it."""
    return {
        "found": True,
        "verdict": "Sized",
        "replicas": verdict.replicas,
        "metrics": [{"metric": metric.title, "asksFor": one.replicas} for metric, one in verdict.measured],
        "conditions": verdict.told(),
        "message": verdict.why or "the size stays",
        "lines": [*_lines(verdict, spec, scale, roster)],
    }


def _lines(verdict: Verdict, spec: Horizontal, scale: Scale, roster: Roster) -> Iterator[str]:
    kind, name = spec.target.kind.partition(".")[0], spec.target.name
    yield (
        f"{kind} {name}: {verdict.replicas} replicas wanted, {scale.wanted} now, of which {roster.serving} serve; "
        f"from {spec.minimum} to {spec.maximum}"
    )
    for metric, one in verdict.measured:
        yield f"{metric.title} asks for {one.replicas}"
    for name, (status, reason, message) in verdict.conditions.items():
        if (name == ABLE and reason not in _PLAIN) or (name != ABLE and status == (name == "ScalingLimited")):
            yield f"{reason}: {message}"
