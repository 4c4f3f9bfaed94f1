"""The samples that stand, by what they are of: one stands until it is replaced or withdrawn."""

from collections.abc import Iterable

from inference_autoscaler.domain.metrics.reading import CONTAINER_LABEL, POD, Reading, Series, read, series_of
from kube import Event, Manifest, Object
from kube.selectors import matches

_NONE: dict[str, Reading] = {}


class Readings:
    """All samples that stand."""

    def __init__(self) -> None:
        self._series: dict[Series, dict[str, Reading]] = {}

    def fold(self, event: Event) -> None:
        """Take in that a MetricReading changed."""
        series = series_of(event.object)
        if event.old is not None and event.new is not None and series_of(event.old) != series:
            self._drop(series_of(event.old), event.key.name)
        found = read(event.new) if event.new is not None else None
        if found is None:
            self._drop(series, event.key.name)
        else:
            self._series.setdefault(series, {})[event.key.name] = found

    def of(self, series: Series, selector: Manifest | None = None) -> list[Reading]:
        """The samples of ``series`` whose labels ``selector`` selects (all without one), by the names of their objects."""
        found = self._series.get(series, _NONE)
        if len(found) < 2 and selector is None:
            return [*found.values()]
        return [found[name] for name in sorted(found) if selector is None or matches(selector, found[name].labels)]

    def of_pods(self, namespace: str, metric: str, pods: Iterable[Object], container: str = "") -> dict[str, Reading]:
        """The sample of each of the ``pods`` that has one, by name: of one container, or of the pod as a whole.

        A pod whose containers were measured singly used the sum of them.
        """
        found: dict[str, Reading] = {}
        for pod in pods:
            listed = self._series.get((namespace, POD, pod.name, metric))
            if listed is not None and (one := _one([listed[name] for name in sorted(listed)], container)) is not None:
                found[pod.name] = one
        return found

    def _drop(self, series: Series, name: str) -> None:
        if (listed := self._series.get(series)) is not None:
            listed.pop(name, None)
            if not listed:
                del self._series[series]


def _one(listed: list[Reading], container: str) -> Reading | None:
    if container:
        return next((one for one in listed if one.labels.get(CONTAINER_LABEL) == container), None)
    whole = next((one for one in listed if CONTAINER_LABEL not in one.labels), None)
    if whole is not None or not listed:
        return whole
    first = min(listed, key=lambda one: one.at)
    return Reading(first.series, sum(one.value_milli for one in listed), first.at, first.window_ms)
