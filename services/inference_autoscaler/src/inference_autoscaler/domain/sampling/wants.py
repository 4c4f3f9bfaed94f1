"""All samples that are wanted now, each once."""

from collections.abc import Callable, Iterable

from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.keda.scaled_object import SCALED_OBJECT
from inference_autoscaler.domain.sampling.autoscalers import wants_of_autoscaler
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from inference_autoscaler.domain.sampling.triggers import wants_of_scaled_object
from inference_autoscaler.domain.sampling.want import Want
from kube import Key, Object, Store


class Wants:
    """Kept up with the objects: only those are read again whose spec is another."""

    def __init__(self, plan: SamplingPlan) -> None:
        self._known: dict[Key, tuple[Object, tuple[Want, ...]]] = {}
        self._readers: dict[str, Callable[[Object], Iterable[Want]]] = {
            SCALED_OBJECT: wants_of_scaled_object,
            AUTOSCALER: lambda item: wants_of_autoscaler(item, plan),
        }
        self.all: dict[str, Want] = {}
        """By their ids. Of two that differ in how often they are asked for, the one that is asked for more often."""

    def update(self, store: Store) -> bool:
        """Look at all autoscalers of ``store``; whether anything else is wanted than before."""
        changed = False
        for kind, read in self._readers.items():
            there = store.of_kind(kind)
            for key, item in there.items():
                known = self._known.get(key)
                if known is None or known[0].body is not item.body:
                    self._known[key] = (item, _read(read, item))
                    changed |= known is None or known[1] != self._known[key][1]
            for key in [key for key in self._known if key.kind == kind and key not in there]:
                changed |= bool(self._known.pop(key)[1])
        if changed:
            listed = sorted(
                (want for _, wants in self._known.values() for want in wants), key=lambda one: -one.every_ms
            )
            self.all = {want.id: want for want in listed}
        return changed


def _read(read: Callable[[Object], Iterable[Want]], item: Object) -> tuple[Want, ...]:
    """What ``item`` wants; nothing where it makes no sense, which its own desk tells."""
    try:
        return tuple(read(item))
    except (ValueError, TypeError, KeyError):
        return ()
