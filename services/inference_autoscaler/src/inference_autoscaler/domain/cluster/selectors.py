"""Whose pods a pod is: the selectors of what is scaled, each found by one of its labels."""

from collections.abc import Iterable

from kube import Key, Manifest, Object
from kube.selectors import matches

_Place = tuple[str, str, str]
_NOBODY: dict[Key, Manifest] = {}


class Selectors:
    """Selectors by whom they are of. One without a label to match selects nothing, as in `pod_index`."""

    def __init__(self) -> None:
        self._placed: dict[_Place, dict[Key, Manifest]] = {}
        self._places: dict[Key, _Place] = {}

    def get(self, key: Key) -> Manifest | None:
        """The selector of ``key``."""
        place = self._places.get(key)
        return None if place is None else self._placed[place][key]

    def put(self, key: Key, selector: Manifest | None) -> None:
        """From now on ``key`` has this selector; None for none."""
        old = self._places.pop(key, None)
        if old is not None:
            del self._placed[old][key]
            if not self._placed[old]:
                del self._placed[old]
        labels: dict[str, str] = (selector or {}).get("matchLabels") or {}
        if selector is None or not labels:
            return
        # Of the labels the one that the fewest others are found by.
        places = ((key.namespace, str(name), str(value)) for name, value in labels.items())
        place = min(places, key=lambda one: len(self._placed.get(one, _NOBODY)))
        self._placed.setdefault(place, {})[key] = selector
        self._places[key] = place

    def of(self, pod: Object) -> list[Key]:
        """Those whose selectors select ``pod``."""
        labels, namespace = pod.labels, pod.key.namespace
        return [
            key
            for name, value in labels.items()
            for key, selector in self._placed.get((namespace, name, value), _NOBODY).items()
            if matches(selector, labels)
        ]

    def sharing(self, pods: Iterable[Object]) -> dict[Key, None]:
        """Those who select any of ``pods``."""
        found: dict[Key, None] = {}
        seen: dict[str, str] | None = None
        for pod in pods:
            if pod.labels != seen:  # pods of one template have the same labels
                found |= dict.fromkeys(self.of(pod))
                seen = pod.labels
        return found
