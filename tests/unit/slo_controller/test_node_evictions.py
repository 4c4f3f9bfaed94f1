"""A node asks for evictions; they are decided once for each time that it asks, and never on old words."""

from typing import Any

from kube import Decision, Event, Key, Object, Verb
from kube.node_evictions import EVICTIONS, asked, written
from slo_controller.domain import SloCore
from slo_controller.domain.evictions import STALE_MS

METRIC = Key("NodeMetric.slo.koordinator.sh", "", "n1")
NOW = 1_000_000


class Node:
    """A core that hears of one node, its pods and what its agent asks for."""

    def __init__(self) -> None:
        self.core, self.objects = SloCore(), dict[Key, Object]()

    def tells(self, item: Object, now: int = NOW) -> None:
        old = self.objects.get(item.key)
        self.objects[item.key] = item
        self.core.fold([Event(old, item)], now)

    def pod(self, name: str, node: str = "n1", uid: str = "", **parts: Any) -> None:
        key = Key("Pod", "default", name)
        metadata = parts.get("metadata", {})
        self.tells(
            Object(key, uid or f"uid-{name}", metadata, {"spec": {"nodeName": node}}, parts.get("status", {}), 1, 1)
        )

    def asks(self, *names: str, at: int = NOW, heard: int = NOW) -> None:
        wishes = [
            {
                "uid": f"uid-{name}",
                "namespace": "default",
                "name": name,
                "reason": "MemoryEvict",
                "message": "it is full",
                "at": at,
            }
            for name in names
        ]
        self.tells(Object(METRIC, "uid-metric", {"annotations": {EVICTIONS: written(heard, wishes)}}, {}, {}, 1, 1))

    def decided(self, now: int = NOW) -> list[Decision]:
        return [one for one in self.core.decide(now, frozenset()) if one.name == "PodEvictedForNode"]


def test_a_pod_that_its_node_names_is_evicted_with_the_nodes_words() -> None:
    node = Node()
    node.pod("a")
    node.asks("a")
    (found,) = node.decided()
    assert (found.subject, found.reason, found.message) == (
        Key("Pod", "default", "a"),
        "MemoryEvict",
        "node n1: it is full",
    )
    (mutation,) = found.mutations
    assert (mutation.verb, mutation.uid) == (Verb.EVICT, "uid-a")


def test_it_is_decided_once_for_each_time_that_is_asked_whoever_decides() -> None:
    node = Node()
    node.pod("a")
    node.asks("a")
    assert len(node.decided()) == 1
    node.asks("a")
    assert node.decided() == []
    again = Node()
    content = node.core.remember()
    assert content is not None
    again.core.restore(content)
    again.pod("a")
    again.asks("a")
    assert again.decided() == []
    again.asks("a", at=NOW + 5)
    assert len(again.decided()) == 1


def test_old_words_are_not_meant_any_more() -> None:
    node = Node()
    node.pod("a")
    node.asks("a", heard=NOW - STALE_MS - 1)
    assert node.decided() == []


def test_a_node_speaks_of_its_own_pods_that_are_there() -> None:
    node = Node()
    node.pod("elsewhere", node="n2")
    node.pod("anew", uid="another")
    node.pod("leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    node.pod("done", status={"phase": "Succeeded"})
    node.asks("elsewhere", "anew", "leaving", "done", "gone")
    assert node.decided() == []


def test_what_cannot_be_read_asks_for_nothing() -> None:
    for text in ("", "no", "[]", '{"pods": 5}', '{"heard": "x"}', '{"pods": [{"uid": 1}]}'):
        assert asked(Object(METRIC, "u", {"annotations": {EVICTIONS: text}}, {}, {}, 1, 1)).pods == ()
