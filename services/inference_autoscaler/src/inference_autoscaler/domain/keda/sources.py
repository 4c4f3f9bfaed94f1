"""What the triggers of ScaledObjects say, how often in a row they said nothing, and what stands in for it."""

from collections.abc import Mapping

from inference_autoscaler.domain.horizontal.proposal import NoProposal, Size
from inference_autoscaler.domain.horizontal.spec import VALUE, Metric
from inference_autoscaler.domain.keda.course import Course
from inference_autoscaler.domain.keda.executor import Poll
from inference_autoscaler.domain.keda.scaled_object import NAME_LABEL, SCALED_OBJECT, Fallback, Scaled, Trigger
from inference_autoscaler.domain.keda.triggers import CRON, RESOURCES, Measured, TriggerError, measure
from inference_autoscaler.domain.metrics.readings import Readings
from kube import Key


class Sources:
    """``counted`` are those whose failures in a row have become more, or none, since somebody looked at it."""

    def __init__(self, readings: Readings, specs: Mapping[Key, Scaled | str], courses: Mapping[Key, Course]) -> None:
        self.counted: dict[Key, None] = {}
        self._readings, self._specs, self._courses = readings, specs, courses

    def poll(self, key: Key, spec: Scaled, now: int) -> tuple[Poll, str, bool]:
        """What the triggers say together, the first failure in words, and whether one of them is on fallback."""
        active, errors, falls_back = False, list[str](), False
        for trigger in spec.triggers:
            if trigger.type in RESOURCES:
                continue
            try:
                active |= measure(trigger, key.namespace, key.name, self._readings, now).active
                self._count(key, spec, trigger, failed=False)
            except TriggerError as error:
                self._count(key, spec, trigger, failed=True)
                errors.append(str(error))
                falls_back |= self._falls_back(key, spec, trigger)
        only_resources = all(trigger.type in RESOURCES for trigger in spec.triggers)
        poll = Poll(active or falls_back or only_resources, bool(errors))
        return poll, errors[0] if errors else "", falls_back

    def measure(self, key: Key, trigger: Trigger, now: int) -> Measured:
        """What one trigger says; nothing is counted. Raises TriggerError."""
        return measure(trigger, key.namespace, key.name, self._readings, now)

    def is_told(self, namespace: str, metric: Metric, now: int) -> bool:
        """Whether no sample says ``metric``: it is of a schedule, or of a source that is silent."""
        found = self._named(namespace, metric)
        if found is None:
            return False
        key, _, trigger = found
        if trigger.type == CRON:
            return True
        try:
            self.measure(key, trigger, now)
        except TriggerError:
            return True
        return False

    def value(self, namespace: str, metric: Metric, size: Size, now: int) -> int | None:
        """What the autoscaler of a ScaledObject is told of its ``metric``, in thousandths; None where it is of no ScaledObject.

        Where the source says nothing that is one more failure of it. Raises NoProposal while there is nothing to fall back on.
        """
        found = self._named(namespace, metric)
        if found is None:
            return None
        key, spec, trigger = found
        try:
            measure(trigger, namespace, key.name, self._readings, now)
            self._count(key, spec, trigger, failed=False)
        except TriggerError:
            self._count(key, spec, trigger, failed=True)
        return self.present_value(namespace, metric, size, now)

    def present_value(self, namespace: str, metric: Metric, size: Size, now: int) -> int | None:
        """The same, and nothing is counted: for whoever only asks."""
        found = self._named(namespace, metric)
        if found is None:
            return None
        key, spec, trigger = found
        try:
            return measure(trigger, namespace, key.name, self._readings, now).value_milli
        except TriggerError as error:
            if spec.fallback is None or not self._falls_back(key, spec, trigger):
                raise NoProposal(metric, str(error)) from None
            return _fallback_milli(metric, spec.fallback, size)

    def is_steady(self, namespace: str, metric: Metric) -> bool:
        """Whether ``value`` of the metric stays as it is until a sample comes."""
        found = self._named(namespace, metric)
        return found is None or self.rests(*found)

    def rests(self, key: Key, spec: Scaled, trigger: Trigger) -> bool:
        """Whether the trigger says the same until a sample comes: it follows no clock, and its failures are all counted."""
        course = self._courses.get(key)
        failures = 0 if course is None else course.failures.get(trigger.metric, 0)
        return trigger.type != CRON and failures in (0, _most(spec))

    def _named(self, namespace: str, metric: Metric) -> tuple[Key, Scaled, Trigger] | None:
        """The ScaledObject whose autoscaler has the metric, and the trigger that it is of."""
        if metric.label is not None and metric.label[0] != NAME_LABEL:
            return None
        labels = None if metric.selector is None else metric.selector.get("matchLabels")
        if not labels or NAME_LABEL not in labels:
            return None
        key = Key(SCALED_OBJECT, namespace, str(labels[NAME_LABEL]))
        spec = self._specs.get(key)
        if not isinstance(spec, Scaled):
            return None
        trigger = next((one for one in spec.triggers if one.metric == metric.name), None)
        return None if trigger is None else (key, spec, trigger)

    def _count(self, key: Key, spec: Scaled, trigger: Trigger, *, failed: bool) -> None:
        course = self._courses.get(key)
        if course is not None and course.count(trigger.metric, failed, _most(spec)):
            self.counted[key] = None

    def _falls_back(self, key: Key, spec: Scaled, trigger: Trigger) -> bool:
        course = self._courses.get(key)
        failures = 0 if course is None else course.failures.get(trigger.metric, 0)
        return spec.fallback is not None and failures > spec.fallback.threshold


def _most(spec: Scaled) -> int:
    """More failures than this come to the same."""
    return spec.fallback.threshold + 1 if spec.fallback else 1


def _fallback_milli(metric: Metric, fallback: Fallback, size: Size) -> int:
    """The value by which the autoscaler comes to the replicas of ``fallback``. Raises NoProposal where there is none."""
    replicas = {
        "currentReplicas": size.replicas,
        "currentReplicasIfHigher": max(size.replicas, fallback.replicas),
        "currentReplicasIfLower": min(size.replicas, fallback.replicas),
    }.get(fallback.behavior, fallback.replicas)
    total = metric.target.amount * replicas
    if metric.target.kind != VALUE:
        return total
    ready = size.roster.serving
    if ready == 0:
        raise NoProposal(metric, "it is on fallback, and no pod is ready to share the value among")
    return total // ready
