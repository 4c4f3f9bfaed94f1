"""Taints that drive pods away, and nodes that are not ready."""

from typing import Any

import pytest

from kube import Key

TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}
READY = "node.kubernetes.io/not-ready"


def node(town: Any, *taints: Any, ready: str = "True") -> None:
    """The node is there, with these taints."""
    spec = {"spec": {"taints": list(taints)} if taints else {}}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    found = town.cluster.store.get(Key("Node", "", "n"))
    if found is None:
        town.cluster.create(Key("Node", "", "n"), {}, spec, status)
    else:
        town.cluster.set_status(town.cluster.replace(found, found.metadata, spec), status)


def pod(town: Any, name: str, *tolerations: dict[str, Any]) -> None:
    """A pod runs on the node."""
    spec = {"nodeName": "n", "containers": [{"name": "c"}], "tolerations": list(tolerations)}
    town.cluster.create(Key("Pod", "default", name), {}, {"spec": spec}, {"phase": "Running"})


def there(town: Any) -> set[str]:
    return {item.name for item in town.cluster.store.of_kind("Pod").values() if not item.deleting}


def taints(town: Any) -> list[tuple[str, bool]]:
    """The key of each taint of the node, and whether its time is told."""
    found = next(iter(town.cluster.store.of_kind("Node").values())).spec.get("taints") or ()
    return [(taint["key"], "timeAdded" in taint) for taint in found]


def test_who_does_not_tolerate_a_taint_leaves_at_once(town: Any) -> None:
    node(town)
    pod(town, "plain")
    pod(town, "other", {"key": "k", "operator": "Equal", "value": "w", "effect": "NoExecute"})
    pod(town, "ever", {"operator": "Exists"})
    town.react()
    assert there(town) == {"plain", "other", "ever"}
    node(town, {**TAINT, "effect": "NoSchedule"})
    town.react()
    assert there(town) == {"plain", "other", "ever"}, "only NoExecute drives away"
    node(town, TAINT)
    town.react()
    assert there(town) == {"ever"}
    assert taints(town) == [("k", True)]


def test_who_tolerates_a_taint_for_some_time_leaves_after_it(town: Any) -> None:
    node(town)
    pod(town, "brief", {"key": "k", "operator": "Exists", "tolerationSeconds": 10})
    pod(town, "no-time", {"key": "k", "operator": "Exists", "tolerationSeconds": 0})
    pod(town, "long", {"key": "k", "operator": "Exists", "tolerationSeconds": 60})
    town.react()
    node(town, TAINT)
    town.react()
    assert there(town) == {"brief", "long"}
    town.advance(9)
    assert there(town) == {"brief", "long"}
    town.advance(2)
    assert there(town) == {"long"}
    node(town)
    town.advance(100)
    assert there(town) == {"long"}, "the taint was taken away in time"


def test_who_comes_later_has_its_time_from_then_on(town: Any) -> None:
    node(town, TAINT)
    town.advance(100)
    pod(town, "late", {"key": "k", "operator": "Exists", "tolerationSeconds": 10})
    town.advance(9)
    assert there(town) == {"late"}
    town.advance(2)
    assert there(town) == set()


@pytest.mark.parametrize(("status", "key"), [("False", READY), ("Unknown", "node.kubernetes.io/unreachable")])
def test_pods_leave_a_node_that_is_not_ready_for_long(town: Any, status: str, key: str) -> None:
    """Five minutes, unless a pod says otherwise; the taint goes with its cause."""
    node(town)
    pod(town, "plain")
    pod(town, "ever", {"key": key, "operator": "Exists", "effect": "NoExecute"})
    pod(town, "brief", {"key": key, "operator": "Exists", "tolerationSeconds": 30})
    town.react()
    node(town, ready=status)
    town.advance(31)
    assert (there(town), taints(town)) == ({"plain", "ever"}, [(key, True)])
    town.advance(270)
    assert there(town) == {"ever"}
    node(town, {"key": key, "effect": "NoExecute"})
    town.react()
    assert taints(town) == []


def test_taints_of_no_sense_drive_nobody_away(town: Any) -> None:
    pod(town, "ever", {"operator": "Exists"})
    for taint in ("all", [], {"effect": "NoExecute", "timeAdded": "soon"}):
        node(town, taint)
        town.react()
        assert there(town) == {"ever"}
