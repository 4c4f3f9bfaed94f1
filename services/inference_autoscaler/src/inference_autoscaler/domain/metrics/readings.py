"""The samples that stand, by what they are of: one stands until it is replaced or withdrawn."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from inference_autoscaler.domain.metrics.pod_use import PodUse
from inference_autoscaler.domain.metrics.reading import CONTAINER_LABEL, POD, Reading, Series, read, series_of, stamp
from kube import Event, Manifest, Object
from kube.selectors import matches

GONE_MS = 60_000
"""Who measures and said nothing for so long, while others did, is gone: what he said last does not count any more."""


@dataclass(frozen=True, slots=True)
class Total:
    """What all who measure one thing said together by ``at``; no value where one of them says that none is known."""

    at: int
    value_milli: int | None


class _Listed:
    """Samples by the names of the objects that say them, and in the order of these.

    Nearly all are ``alone``: to keep a list for each would cost more than to make one when somebody asks.
    """

    __slots__ = ("_order", "alone", "named")

    def __init__(self) -> None:
        self.named: dict[str, Reading] = {}
        self.alone: Reading | None = None
        self._order: Sequence[Reading] | None = None

    def put(self, name: str, one: Reading) -> None:
        named = self.named
        named[name], self._order = one, None
        self.alone = one if len(named) == 1 else None

    def drop(self, name: str) -> None:
        named = self.named
        del named[name]
        self._order = None
        self.alone = next(iter(named.values())) if len(named) == 1 else None

    def ordered(self) -> Sequence[Reading]:
        """All of them; put in order when somebody asks, and not again before one changes."""
        if self.alone is not None:
            return (self.alone,)
        if self._order is None:
            named = self.named
            self._order = [named[name] for name in sorted(named)]
        return self._order


_NONE = _Listed()
_Silence = tuple[str, int]


class _Samples:
    """Those of one series, and of each label that they carry."""

    __slots__ = ("all", "labelled")

    def __init__(self) -> None:
        self.all = _Listed()
        self.labelled: dict[tuple[str, str], _Listed] = {}

    def put(self, name: str, one: Reading) -> None:
        old = self.all.named.get(name)
        if old is not None and old.labels != one.labels:
            self.drop(name)
        self.all.put(name, one)
        for label in one.labels.items():
            listed = self.labelled.get(label)
            if listed is None:
                listed = self.labelled[label] = _Listed()
            listed.put(name, one)

    def drop(self, name: str) -> None:
        old = self.all.named[name]
        self.all.drop(name)
        for label in old.labels.items():
            self.labelled[label].drop(name)
            if not self.labelled[label].named:
                del self.labelled[label]

    def selected(self, selector: Manifest) -> Sequence[Reading]:
        """Those that ``selector`` selects, by name: looked for among those that carry its rarest label."""
        wanted: dict[str, str] = selector.get("matchLabels") or {}
        listed = (self.labelled.get(label, _NONE) for label in wanted.items())
        rarest = min(listed, key=lambda one: len(one.named), default=self.all)
        return [one for one in rarest.ordered() if matches(selector, one.labels)]


class Readings:
    """All samples that stand."""

    def __init__(self) -> None:
        self._series: dict[Series, _Samples] = {}
        self.use = PodUse()
        self._silent: dict[Series, dict[str, _Silence]] = {}
        """Why no sample is known, and when that was said, by the names of the objects that say that there is none."""

    def fold(self, event: Event) -> list[Hashable]:
        """Take in that a MetricReading changed; the topics of what it is, and was, a sample of."""
        name, series = event.key.name, series_of(event.object)
        before = series if event.old is None or event.new is None else series_of(event.old)
        old = self._said(before, name)
        found = read(event.new) if event.new is not None else None
        if old is not None and (found is None or before != series):
            self._drop(before, name)
        if found is None:
            topics = _topics(old)
        else:
            listed = self._series.get(series)
            if listed is None:
                listed = self._series[series] = _Samples()
            listed.put(name, found)
            same = old is not None and old.series == series and old.labels == found.labels
            topics = _topics(found) if same else [*_topics(old), *_topics(found)]
        if before != series:
            self._note_silence(before, name, None)
        if self._note_silence(series, name, event.new if found is None else None):
            topics += topics_of(series, (event.object.spec.get("metric") or {}).get("labels") or {})
        return topics

    def _note_silence(self, series: Series, name: str, silent: Object | None) -> bool:
        """Keep that ``name`` says that there is no sample of ``series``, if it does, and why; whether that is news."""
        why = (str(silent.spec.get("message") or ""), stamp(silent) or 0) if silent is not None else None
        listed = self._silent.get(series)
        before = None if listed is None else listed.get(name)
        if why is not None:
            self._silent.setdefault(series, {})[name] = why
        elif listed is not None:
            listed.pop(name, None)
            if not listed:
                del self._silent[series]
        return (why and why[0]) != (before and before[0])

    def why_silent(self, series: Series) -> str:
        """Why no sample of ``series`` is known, in the words of the first object that says so."""
        told = next((why for _, (why, _) in sorted(self._silent.get(series, {}).items()) if why), "")
        return f"no sample of it stands: {told}" if told else "no sample of it stands"

    def of(self, series: Series, selector: Manifest | None = None) -> Sequence[Reading]:
        """The samples of ``series`` whose labels ``selector`` selects (all without one), by the names of their objects."""
        found = self._series.get(series)
        if found is None:
            return ()
        return found.all.ordered() if selector is None else found.selected(selector)

    def labelled(self, series: Series, label: tuple[str, str]) -> Sequence[Reading]:
        """What ``of`` says where ``label`` is the one thing that the selector wants."""
        found = self._series.get(series)
        return () if found is None else found.labelled.get(label, _NONE).ordered()

    def total(self, series: Series, selector: Manifest | None, now: int) -> Total | None:
        """What those who measure ``series`` say together, each by his last sample; None where nobody says anything.

        A sample of times to come is one of now. Who is gone (`GONE_MS` behind the newest) does not count; until then he is never zero.
        """
        found = [(min(one.at, now), one.value_milli) for one in self.of(series, selector)]
        silent = self._silent.get(series, {}) if selector is None else {}
        stamps = [min(at, now) for _, at in silent.values()]
        newest = max([*(at for at, _ in found), *stamps], default=None)
        if newest is None:
            return None
        is_known = all(at <= newest - GONE_MS for at in stamps)
        return Total(newest, sum(value for at, value in found if at > newest - GONE_MS) if is_known else None)

    def of_pods(
        self, namespace: str, metric: str, pods: Iterable[Object], container: str, now: int
    ) -> dict[str, Reading]:
        """The sample of each of the ``pods`` that has one, by name: of one container, or of the pod as a whole.

        A pod whose containers were measured singly used the sum of them. Where nobody hands in what a pod uses, the report of
        its node tells it.
        """
        found: dict[str, Reading] = {}
        for pod in pods:
            _, _, name = pod.key
            series = (namespace, POD, name, metric)
            listed = self._series.get(series)
            if listed is not None and (one := _one(listed.all, container)) is not None:
                found[name] = one
            elif series not in self._silent and (used := self.use.of(pod, metric, container, now)) is not None:
                found[name] = used
        return found

    def _said(self, series: Series, name: str) -> Reading | None:
        listed = self._series.get(series)
        return None if listed is None else listed.all.named.get(name)

    def _drop(self, series: Series, name: str) -> None:
        listed = self._series[series]
        listed.drop(name)
        if not listed.all.named:
            del self._series[series]


def topic_of(series: Series, selector: Manifest | None = None) -> Hashable:
    """By what whoever goes by the samples of ``series`` that ``selector`` selects learns of a new one.

    He may learn of others, too: of several labels that a selector wants only the first counts.
    """
    wanted: dict[str, str] = (selector or {}).get("matchLabels") or {}
    return (series, *next(iter(wanted.items()))) if wanted else series


def only_label(selector: Manifest | None) -> tuple[str, str] | None:
    """The one label that ``selector`` wants, if it wants nothing else."""
    wanted: dict[str, str] = (selector or {}).get("matchLabels") or {}
    if selector is None or len(wanted) != 1 or "matchExpressions" in selector:
        return None
    return next(iter(wanted.items()))


def topics_of(series: Series, labels: Mapping[str, str]) -> list[Hashable]:
    """The topics of a sample of ``series`` with these ``labels``."""
    return [series, *((series, *label) for label in labels.items())]


def _topics(one: Reading | None) -> list[Hashable]:
    return [] if one is None else topics_of(one.series, one.labels)


def _one(told: _Listed, container: str) -> Reading | None:
    if told.alone is not None and not container:
        return told.alone
    listed = told.ordered()
    if container:
        return next((one for one in listed if one.labels.get(CONTAINER_LABEL) == container), None)
    whole = next((one for one in listed if CONTAINER_LABEL not in one.labels), None)
    if whole is not None or not listed:
        return whole
    first = min(listed, key=lambda one: one.at)
    return Reading(first.series, sum(one.value_milli for one in listed), first.at, first.window_ms)
