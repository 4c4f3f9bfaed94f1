"""Whether evictions were of use: whoever others were evicted for starts where it was promised, once they have left."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kube import Decision, Key, Store, Verb


@dataclass(frozen=True, slots=True)
class Promise:
    """Room on nodes for some pods (key, uid, node), as soon as the victims (key, uid) have left."""

    title: str
    places: tuple[tuple[Key, str, str], ...]
    victims: tuple[tuple[Key, str], ...]


@dataclass(slots=True)
class Promises:
    """Those that were made and not yet kept. What a user or a node changes while victims leave may make one void."""

    _open: list[Promise] = field(default_factory=list)

    def note(self, decision: Decision) -> None:
        """Take in a decision that was carried out."""
        victims = tuple((one.key, one.uid) for one in decision.mutations if one.verb is Verb.EVICT)
        claim = (decision.payload or {}).get("claim")
        if victims and claim:
            places = tuple((Key(*key), uid, node) for *key, uid, node in claim["places"])
            self._open.append(Promise(f"{decision.name} of {decision.subject}", places, victims))

    def broken(self, store: Store) -> list[str]:
        """The promises whose victims are gone by now, and which were not kept, in words. Each is looked at once then.

        One whose victims take their time is over as soon as they are seen to: until they have left, the cluster may be
        another one.
        """
        looked, self._open = self._open, []
        return [fault for promise in looked if not _lingers(promise, store) for fault in _faults(promise, store)]


def _lingers(promise: Promise, store: Store) -> bool:
    return any((pod := store.get(key)) is not None and pod.uid == uid for key, uid in promise.victims)


def _faults(promise: Promise, store: Store) -> Iterator[str]:
    """A pod that was promised a place and has another one, or none."""
    for key, uid, node in promise.places:
        pod = store.get(key)
        if pod is None or pod.uid != uid or pod.deleting:
            continue
        has = str(pod.spec.get("nodeName") or "")
        if has != node:
            names = ", ".join(victim.name for victim, _ in promise.victims[:5])
            yield f"{promise.title}: {names} left {node} for pod {key.name}, which {f'is on {has}' if has else 'waits'}"
