"""The samples that stand, by what they are of: one stands until it is replaced or withdrawn."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from inference_autoscaler.domain.metrics.pod_use import PodUse
from inference_autoscaler.domain.metrics.reading import CONTAINER_LABEL, POD, Reading, Series, read, series_of
from kube import Event, Manifest, Object
from kube.selectors import matches

_Named = dict[str, Reading]
"""By the names of the objects that say them."""

_NONE: _Named = {}


@dataclass(slots=True)
class _Samples:
    """Those of one series, and of each label that they carry."""

    named: _Named = field(default_factory=dict)
    labelled: dict[tuple[str, str], _Named] = field(default_factory=dict)

    def put(self, name: str, one: Reading) -> None:
        self.drop(name)
        self.named[name] = one
        for label in one.labels.items():
            self.labelled.setdefault(label, {})[name] = one

    def drop(self, name: str) -> None:
        old = self.named.pop(name, None)
        for label in old.labels.items() if old is not None else ():
            listed = self.labelled[label]
            del listed[name]
            if not listed:
                del self.labelled[label]

    def selected(self, selector: Manifest) -> list[Reading]:
        """Those that ``selector`` selects, by name: looked for among those that carry its rarest label."""
        wanted: dict[str, str] = selector.get("matchLabels") or {}
        if len(wanted) == 1 and "matchExpressions" not in selector:
            (label,) = wanted.items()
            return _ordered(self.labelled.get(label, _NONE))
        rarest = min((self.labelled.get(label, _NONE) for label in wanted.items()), key=len, default=self.named)
        return [rarest[name] for name in sorted(rarest) if matches(selector, rarest[name].labels)]


class Readings:
    """All samples that stand."""

    def __init__(self) -> None:
        self._series: dict[Series, _Samples] = {}
        self.use = PodUse()
        self._silent: dict[Series, dict[str, str]] = {}
        """Why no sample is known, by the names of the objects that say that there is none."""

    def fold(self, event: Event) -> None:
        """Take in that a MetricReading changed."""
        series = series_of(event.object)
        if event.old is not None and event.new is not None and series_of(event.old) != series:
            self._drop(series_of(event.old), event.key.name)
        found = read(event.new) if event.new is not None else None
        if found is None:
            self._drop(series, event.key.name)
        else:
            self._series.setdefault(series, _Samples()).put(event.key.name, found)
        if event.new is not None and found is None:
            self._silent.setdefault(series, {})[event.key.name] = str(event.new.spec.get("message") or "")
        elif (listed := self._silent.get(series)) is not None:
            listed.pop(event.key.name, None)
            if not listed:
                del self._silent[series]

    def why_silent(self, series: Series) -> str:
        """Why no sample of ``series`` is known, in the words of the first object that says so."""
        told = next((why for _, why in sorted(self._silent.get(series, {}).items()) if why), "")
        return f"no sample of it stands: {told}" if told else "no sample of it stands"

    def of(self, series: Series, selector: Manifest | None = None) -> list[Reading]:
        """The samples of ``series`` whose labels ``selector`` selects (all without one), by the names of their objects."""
        found = self._series.get(series)
        if found is None:
            return []
        return _ordered(found.named) if selector is None else found.selected(selector)

    def of_pods(
        self, namespace: str, metric: str, pods: Iterable[Object], container: str, now: int
    ) -> dict[str, Reading]:
        """The sample of each of the ``pods`` that has one, by name: of one container, or of the pod as a whole.

        A pod whose containers were measured singly used the sum of them. Where nobody hands in what a pod uses, the report of
        its node tells it.
        """
        found: dict[str, Reading] = {}
        for pod in pods:
            series = (namespace, POD, pod.name, metric)
            listed = self._series.get(series)
            if listed is not None and (one := _one(listed.named, container)) is not None:
                found[pod.name] = one
            elif series not in self._silent and (used := self.use.of(pod, metric, container, now)) is not None:
                found[pod.name] = used
        return found

    def _drop(self, series: Series, name: str) -> None:
        if (listed := self._series.get(series)) is not None:
            listed.drop(name)
            if not listed.named:
                del self._series[series]


def _ordered(named: _Named) -> list[Reading]:
    return [*named.values()] if len(named) == 1 else [named[name] for name in sorted(named)]


def _one(named: _Named, container: str) -> Reading | None:
    listed = _ordered(named)
    if container:
        return next((one for one in listed if one.labels.get(CONTAINER_LABEL) == container), None)
    whole = next((one for one in listed if CONTAINER_LABEL not in one.labels), None)
    if whole is not None or not listed:
        return whole
    first = min(listed, key=lambda one: one.at)
    return Reading(first.series, sum(one.value_milli for one in listed), first.at, first.window_ms)
