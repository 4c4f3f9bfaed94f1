"""The pods of each namespace by their labels, so that a selector looks at those that carry its rarest label only."""

from collections.abc import Iterable

from kube import Event, Key, Manifest, Object
from kube.selectors import matches

_Place = tuple[str, str, str]
_NO_PODS: dict[Key, Object] = {}


class PodIndex:
    """All pods, by namespace and label."""

    def __init__(self) -> None:
        self._labelled: dict[_Place, dict[Key, Object]] = {}

    def fold(self, event: Event) -> None:
        """Take in that a pod changed."""
        if event.old is not None and (event.new is None or event.new.labels != event.old.labels):
            for place in _places(event.old):
                listed = self._labelled[place]
                listed.pop(event.key, None)
                if not listed:
                    del self._labelled[place]
        if event.new is not None:
            for place in _places(event.new):
                self._labelled.setdefault(place, {})[event.key] = event.new

    def selected(self, namespace: str, selector: Manifest | None) -> list[Object]:
        """The pods that ``selector`` selects, by name. A selector without a label to match selects none: none has one."""
        wanted: dict[str, str] = (selector or {}).get("matchLabels") or {}
        places = [(namespace, str(name), str(value)) for name, value in wanted.items()]
        if not places:
            return []
        rarest = min((self._labelled.get(place, _NO_PODS) for place in places), key=len)
        return sorted((pod for pod in rarest.values() if matches(selector, pod.labels)), key=_name)


def _places(pod: Object) -> Iterable[_Place]:
    return ((pod.namespace, name, value) for name, value in pod.labels.items())


def _name(pod: Object) -> str:
    return pod.name
