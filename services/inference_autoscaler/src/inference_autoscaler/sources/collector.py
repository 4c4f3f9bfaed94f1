"""Keeps the samples that autoscalers go by: asks for each when it is due, and hands it in when it is another than before."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from inference_autoscaler.domain.metrics.reading import POD, READING, SOURCE_LABEL, stamp
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.source import Exposition, Source
from inference_autoscaler.domain.sampling.want import WANT_LABEL
from inference_autoscaler.domain.sampling.wants import Asked, Wants
from inference_autoscaler.sources.answers import SourceFailed
from inference_autoscaler.sources.asking import Answer, PodAddress
from inference_autoscaler.sources.hand_in import NotHandedIn
from inference_autoscaler.sources.pod_addresses import address_of
from inference_autoscaler.sources.timetable import FIRST_SPREAD_MS, Timetable
from kube import Key, Manifest, Object, Store

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often it is looked whether anything else is wanted, or is due."""
SWEEP_SECONDS = 10.0
"""How often it is looked for samples that nobody wants any more."""
ENDED_MS = 600_000
"""A source that said nothing of a service for so long has ended, or the service sleeps; its last sample counts for nobody."""
SETTLING_MS = 10_000
"""So long what was handed in counts as being there, though the facts do not tell it yet."""


class View(Protocol):
    """What the leader of the service knows."""

    store: Store

    def pods_of(self, target: Key) -> Sequence[Object]:
        """The pods of what can be scaled."""


class Asking(Protocol):
    """`sources.asking.Asker`."""

    async def ask(self, source: Source, pods: Sequence[PodAddress]) -> Answer: ...


class HandingIn(Protocol):
    """`sources.hand_in.HandIn`."""

    async def store(self, reading: Manifest) -> None: ...

    async def delete(self, key: Key, uid: str) -> None: ...


class Collector:
    """Runs beside the decider of the leader; where another process leads it does nothing.

    ``view`` is what is known now, None while this process does not lead. ``now`` is in milliseconds since the epoch.
    """

    def __init__(
        self,
        plan: SamplingPlan,
        view: Callable[[], View | None],
        asker: Asking,
        hand_in: HandingIn,
        now: Callable[[], int],
    ) -> None:
        self._plan, self._view, self._asker, self._hand_in, self._now = plan, view, asker, hand_in, now
        self._begin()

    def _begin(self) -> None:
        """Know nothing: at the start, and when the lead was lost."""
        self._seen: View | None = None
        self._wants = Wants(self._plan)
        self._timetable = Timetable()
        self._said: dict[Key, tuple[int, Manifest]] = {}
        self._swept = 0

    def counts(self) -> tuple[int, int]:
        """How many sources are asked, and how many of them said nothing the last time."""
        return self._timetable.counts()

    async def run(self) -> None:
        """Ask for ever."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                view = self._view()
                if view is not self._seen:
                    self._begin()
                    self._seen = view
                if view is not None:
                    self._look(view, tasks)
                await asyncio.sleep(LOOK_SECONDS)

    def _look(self, view: View, tasks: asyncio.TaskGroup) -> None:
        now = self._now()
        asked = self._wants.asked
        changed = self._wants.update(view.store)
        spread = FIRST_SPREAD_MS if len(changed) > 1 else 1
        for name in sorted(changed):
            if name in asked:
                self._timetable.keep(name, asked[name].every_ms, now, spread)
            else:
                self._timetable.drop(name)
        for name in self._timetable.due(now):
            tasks.create_task(self._ask(view, name, asked[name]), name="asks a source of samples")
        if now - self._swept >= SWEEP_SECONDS * 1000:
            self._swept = now
            for item in self._unwanted(view):
                tasks.create_task(self._drop(item), name="drops a sample")

    async def _ask(self, view: View, name: str, asked: Asked) -> None:
        """Ask one source and hand in what it says. Whatever it says, others are asked all the same."""
        failed, answer = "", Answer({})
        try:
            answer = await self._asker.ask(asked.source, self._addresses(view, asked))
        except SourceFailed as error:
            failed = str(error)
        except Exception as error:
            log.exception("source_not_understood")
            failed = f"what it says cannot be read: {type(error).__name__}"
        if view is not self._view():
            return
        for reading in self._readings(view, asked, answer, failed):
            await self._say(view, reading)
        self._timetable.answered(name, self._now(), failed=bool(failed))

    def _addresses(self, view: View, asked: Asked) -> list[PodAddress]:
        source = asked.source
        return [address_of(pod) for pod in view.pods_of(source.target)] if isinstance(source, Exposition) else []

    def _readings(self, view: View, asked: Asked, answer: Answer, failed: str) -> Iterable[Manifest]:
        """The samples that an answer comes to."""
        now = self._now()
        for want in list(asked.wants.values()):
            if want.target is None:
                yield want.reading(answer.values.get(""), failed or "it tells no value", now)
                continue
            for pod in view.pods_of(want.target):
                value = answer.values.get(pod.name)
                # Of a pod that never told anything nothing has to be taken back.
                if value is not None or view.store.get(want.key(pod.name)) is not None:
                    why = failed or answer.missing.get(pod.name) or "it tells nothing of this pod"
                    yield want.reading(value, why, now, pod.name)

    async def _say(self, view: View, reading: Manifest) -> None:
        """Hand ``reading`` in if it says something else than what stands."""
        key, now = Key(READING, reading["metadata"]["namespace"], reading["metadata"]["name"]), self._now()
        at, said = self._said.get(key, (0, {}))
        there = view.store.get(key)
        if now - at < SETTLING_MS:
            if _same(said, reading["spec"]):
                return
        elif there is not None and _same(there.spec, reading["spec"]) and there.labels == reading["metadata"]["labels"]:
            return
        self._said[key] = (now, reading["spec"])
        try:
            await self._hand_in.store(reading)
        except NotHandedIn as error:
            self._said.pop(key, None)
            log.warning("sample_not_handed_in", extra={"sample": key.name, "detail": str(error)})

    def _unwanted(self, view: View) -> list[Object]:
        """Samples of ours that nobody wants any more, or whose pod is gone; and those of sources that ended."""
        found = []
        for key, item in view.store.of_kind(READING).items():
            want = self._wants.all.get(item.labels.get(WANT_LABEL, ""))
            if item.labels.get(SOURCE_LABEL) and (stamp(item) or 0) < self._now() - ENDED_MS:
                found.append(item)
            if WANT_LABEL not in item.labels:
                continue
            described = item.spec.get("describedObject") or {}
            pod = Key(POD, key.namespace, str(described.get("name"))) if described.get("kind") == POD else None
            if want is None or (pod is not None and want.target is not None and view.store.get(pod) is None):
                found.append(item)
        return found

    async def _drop(self, item: Object) -> None:
        self._said.pop(item.key, None)
        try:
            await self._hand_in.delete(item.key, item.uid)
        except NotHandedIn as error:
            log.warning("sample_not_dropped", extra={"sample": item.name, "detail": str(error)})


def _same(one: Manifest, other: Manifest) -> bool:
    """Whether two samples say the same, whenever they were taken."""
    return {**one, "timestamp": ""} == {**other, "timestamp": ""}
