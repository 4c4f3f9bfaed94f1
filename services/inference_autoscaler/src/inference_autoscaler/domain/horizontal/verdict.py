"""What one look at a HorizontalPodAutoscaler comes to: the size, and the conditions that say why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inference_autoscaler.domain.horizontal.history import History
from inference_autoscaler.domain.horizontal.limits import DOWN_STABILIZED, WORDS, Limited, limited
from inference_autoscaler.domain.horizontal.proposal import NoProposal, Proposal, Size
from inference_autoscaler.domain.horizontal.spec import Horizontal, Metric
from kube import Manifest

ABLE, ACTIVE, LIMITED, ZEROED = "AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"
RESCALED, RESCALE = "SucceededRescale", "SuccessfulRescale"
Measure = Callable[[Metric, Size], Proposal]
"""What a metric asks for. Raises NoProposal."""


@dataclass(slots=True)
class Verdict:
    """``why`` is the reason for a new size, "" where it stays. ``conditions`` are by type, as (status, reason, message)."""

    replicas: int
    why: str = ""
    conditions: dict[str, tuple[bool, str, str]] = field(default_factory=dict)
    measured: list[tuple[Metric, Proposal]] = field(default_factory=list)
    answer: int | None = None
    """What the metrics asked for; None where nothing was asked of them, or they could not say."""

    def told(self) -> list[Manifest]:
        """The conditions without their times, in a fixed order."""
        return [
            {"type": name, "status": str(status), "reason": reason, "message": message}
            for name, (status, reason, message) in self.conditions.items()
        ]


def judge(
    spec: Horizontal, size: Size, history: History, measure: Measure, now: int, *, zeroed: bool, rivals: Sequence[str]
) -> Verdict:
    """Look at an autoscaler of a target of ``size``. ``rivals`` are the others that mean the same pods.

    ``zeroed`` says that the size was brought to zero by this autoscaler: a zero that a user set is a pause.
    """
    verdict = Verdict(size.replicas)
    _say(verdict, ABLE, True, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
    if rivals:
        others = ", ".join(rivals)
        message = f"pods of the target are meant by several autoscalers: {others}; none of them scales it"
        _say(verdict, ACTIVE, False, "AmbiguousSelector", message)
        return verdict
    if size.replicas == 0 and not zeroed:
        message = "scaling is disabled since the replica count of the target is zero"
        _say(verdict, ACTIVE, False, "ScalingDisabled", message)
        return verdict
    if size.replicas > spec.maximum:
        return _moved(verdict, spec.maximum, "Current number of replicas above Spec.MaxReplicas")
    if size.replicas < spec.minimum:
        return _moved(verdict, spec.minimum, "Current number of replicas below Spec.MinReplicas")
    leading = _ask(verdict, spec, size, measure)
    if verdict.answer is None:
        return verdict
    found = limited(spec, history, size.replicas, verdict.answer, now)
    _say_limits(verdict, found, verdict.answer)
    if found.replicas == size.replicas:
        return verdict
    rising = verdict.answer > size.replicas
    return _moved(verdict, found.replicas, f"{leading} above target" if rising else "All metrics below target")


def _ask(verdict: Verdict, spec: Horizontal, size: Size, measure: Measure) -> str:
    """The largest of what the metrics ask for becomes the answer; the name of the one that asks for it.

    A metric that says nothing might have asked for more: it never lets the others go down.
    """
    failures: list[NoProposal] = []
    for metric in spec.metrics:
        try:
            verdict.measured.append((metric, measure(metric, size)))
        except NoProposal as failure:
            failures.append(failure)
    best: tuple[Metric, Proposal] | None = None
    for one in verdict.measured:
        if best is None or one[1].replicas > best[1].replicas:
            best = one
    if best is None or (failures and best[1].replicas < size.replicas):
        count = f"invalid metrics ({len(failures)} invalid out of {len(spec.metrics)})"
        message = f"the HPA was unable to compute the replica count: {count}, first error is: {failures[0]}"
        _say(verdict, ACTIVE, False, failures[0].reason, message)
        return ""
    title = best[0].title
    message = f"the HPA was able to successfully calculate a replica count from {title}"
    _say(verdict, ACTIVE, True, "ValidMetricFound", message)
    verdict.answer = best[1].replicas
    return title


def _say_limits(verdict: Verdict, found: Limited, answer: int) -> None:
    words = WORDS[found.able]
    if found.able == DOWN_STABILIZED:
        words = f"{words} (asked for now: {answer})"
    _say(verdict, ABLE, True, found.able, words)
    _say(verdict, LIMITED, found.is_limited, found.limit, WORDS[found.limit])


def _moved(verdict: Verdict, replicas: int, why: str) -> Verdict:
    verdict.replicas, verdict.why = replicas, why
    _say(verdict, ABLE, True, RESCALED, f"the HPA controller was able to update the target scale to {replicas}")
    return verdict


def _say(verdict: Verdict, name: str, status: bool, reason: str, message: str) -> None:
    verdict.conditions[name] = (status, reason, message)
