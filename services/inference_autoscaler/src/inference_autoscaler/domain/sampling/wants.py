"""All samples that are wanted now, each once, by the sources that are asked for them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.sampling.autoscalers import wants_of_autoscaler
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.source import Source
from inference_autoscaler.domain.sampling.triggers import wants_of_scaled_object
from inference_autoscaler.domain.sampling.want import Want
from kube import Key, Manifest, Object, Store

_Read = Callable[[Object], Iterable[Want]]
_Told = tuple[Manifest, dict[str, Want]]
"""The body of an object, and what it wants by the ids."""


@dataclass(slots=True)
class Asked:
    """One source, and what is wanted of it, by the ids."""

    source: Source
    wants: dict[str, Want] = field(default_factory=dict)

    @property
    def every_ms(self) -> int:
        """How often it is asked: as often as the one who wants it most often."""
        return min(want.every_ms for want in self.wants.values())


class Wants:
    """Kept up with the objects: only those are read again whose spec is another, and only what they want is looked at."""

    def __init__(self, plan: SamplingPlan) -> None:
        readers: dict[str, _Read] = {AUTOSCALER: lambda item: wants_of_autoscaler(item, plan)}
        if plan.triggers:
            readers[SCALED_OBJECT] = wants_of_scaled_object
        self._readers = readers
        self._known: dict[str, dict[Key, _Told]] = {kind: {} for kind in readers}
        self._wanting: dict[str, dict[Key, Want]] = {}
        """Who wants each, by the ids."""

        self.all: dict[str, Want] = {}
        """By the ids. Of those who want one alike the one counts who wants it most often."""

        self.asked: dict[str, Asked] = {}
        """By a name of the source."""

    def update(self, store: Store) -> set[str]:
        """Look at all autoscalers of ``store``; the names of the sources of which anything else is wanted than before."""
        changed: set[str] = set()
        for kind, read in self._readers.items():
            there, known = store.of_kind(kind), self._known[kind]
            fresh = [
                item for key, item in there.items() if (told := known.get(key)) is None or told[0] is not item.body
            ]
            for item in fresh:
                wants = {want.id: want for want in _read(read, item)}
                self._replace(item.key, known.get(item.key, ({}, {}))[1], wants, changed)
                known[item.key] = (item.body, wants)
            if len(known) > len(there):
                for key in known.keys() - there.keys():
                    self._replace(key, known.pop(key)[1], {}, changed)
        return changed

    def _replace(self, key: Key, old: dict[str, Want], new: dict[str, Want], changed: set[str]) -> None:
        """The object of ``key`` wants something else."""
        if old == new:
            return
        for name in old.keys() - new.keys():
            del self._wanting[name][key]
        for name, want in new.items():
            self._wanting.setdefault(name, {})[key] = want
        for name in sorted(old.keys() | new.keys()):
            source = old[name].source if name in old else new[name].source
            self._settle(name, source, changed)

    def _settle(self, name: str, source: Source, changed: set[str]) -> None:
        place = repr(source)
        changed.add(place)
        if wanting := self._wanting[name]:
            want = min(wanting.values(), key=lambda one: one.every_ms)
            self.all[name] = self.asked.setdefault(place, Asked(source)).wants[name] = want
            return
        del self._wanting[name], self.all[name], self.asked[place].wants[name]
        if not self.asked[place].wants:
            del self.asked[place]


def _read(read: _Read, item: Object) -> tuple[Want, ...]:
    """What ``item`` wants; nothing where it makes no sense, which its own desk tells."""
    try:
        return tuple(read(item))
    except (ValueError, TypeError, KeyError):
        return ()
