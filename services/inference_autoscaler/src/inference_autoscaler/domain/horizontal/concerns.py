"""Which autoscalers a fact concerns: those that name its object as their target, select its pod, or go by its sample."""

from collections.abc import Hashable, Iterable

from inference_autoscaler.domain.agenda import Subscribers
from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import scale_of
from inference_autoscaler.domain.cluster.selectors import Selectors
from inference_autoscaler.domain.horizontal.pod_classes import Roster
from inference_autoscaler.domain.horizontal.spec import Horizontal
from kube import Event, Key, Manifest, Object, Store


class Concerns:
    """``touched`` are those that something concerned since somebody took them.

    Whose pods a target has, and who else means them, is looked up anew only when one of these pods, or a selector, changed.
    """

    def __init__(self, pods: PodIndex) -> None:
        self.store = Store()
        self.touched: dict[Key, None] = {}
        self._pods = pods
        self._standings: dict[Key, tuple[Roster, list[str]]] = {}
        self._targets: dict[Key, Key] = {}
        self._subscribers, self._selectors = Subscribers(), Selectors()

    def put(self, key: Key, spec: Horizontal) -> None:
        """The autoscaler ``key`` goes by what ``spec`` names from now on."""
        self.drop(key)
        self._targets[key] = spec.target
        self._subscribers.subscribe(key, spec.topics())
        self._unsettle(self._subscribers.of(spec.target))
        self._select(key)

    def drop(self, key: Key) -> None:
        """It goes by nothing; those who had their target or their pods in common with it are concerned."""
        target = self._targets.pop(key, None)
        if target is not None:
            self._unsettle(self._subscribers.of(target))
            self._select(key)
            self._subscribers.subscribe(key, ())
        self.touched.pop(key, None)
        self._standings.pop(key, None)

    def touch(self, topic: Hashable) -> None:
        """Take in that something changed that they may go by."""
        self.touched.update(dict.fromkeys(self._subscribers.of(topic)))

    def touch_all(self, keys: Iterable[Key | None]) -> None:
        """Take in that something changed that those of ``keys`` that there are may go by."""
        self.touched.update(dict.fromkeys(key for key in keys if key in self._targets and key is not None))

    def touch_everybody(self) -> None:
        """Take in that something changed that each of them may go by."""
        self.touched.update(dict.fromkeys(self._targets))

    def see_target(self, event: Event) -> None:
        """Take in that something changed that may be scaled."""
        for key in self._subscribers.of(event.key):
            self.touched[key] = None
            self._select(key)

    def see_pod(self, event: Event) -> None:
        """Take in that a pod changed."""
        old, new = event.old, event.new
        if old is not None and (new is None or new.labels != old.labels):
            self._unsettle(self._selectors.of(old))
        if new is not None:
            self._unsettle(self._selectors.of(new))

    def see_use(self, pod: Object) -> None:
        """Take in that something was measured of ``pod``."""
        self.touched.update(dict.fromkeys(self._selectors.of(pod)))

    def roster(self, key: Key) -> Roster:
        """The pods of its target."""
        return self._standing(key)[0]

    def rivals(self, key: Key) -> list[str]:
        """The names of the others that name the same target, or whose targets have any of its pods, too."""
        return self._standing(key)[1]

    def _standing(self, key: Key) -> tuple[Roster, list[str]]:
        known = self._standings.get(key)
        if known is None:
            pods = self._pods.selected(key.namespace, self._selectors.get(key))
            others = {*self._subscribers.of(self._targets.get(key)), *self._selectors.sharing(pods)} - {key}
            known = self._standings[key] = Roster(pods), sorted(other.name for other in others)
        return known

    def _select(self, key: Key) -> None:
        """Keep the selector of its target; those who share pods with it now, or did before, are concerned."""
        target = self._targets.get(key)
        scale = None if target is None else scale_of(self.store.get(target))
        old, new = self._selectors.get(key), None if scale is None else scale.selector
        if new is not old:
            self._standings.pop(key, None)
            self._stir(key.namespace, old)
            self._selectors.put(key, new)
            self._stir(key.namespace, new)

    def _stir(self, namespace: str, selector: Manifest | None) -> None:
        self._unsettle(self._selectors.sharing(self._pods.selected(namespace, selector)))

    def _unsettle(self, keys: Iterable[Key]) -> None:
        """Their pods, or who else means these, changed."""
        for key in keys:
            self.touched[key] = None
            self._standings.pop(key, None)
