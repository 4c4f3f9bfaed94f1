"""Which node a pod gets: filters, scores, and what pods ask of each other."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.columns import vectors
from gang_scheduler.domain.room.shape_view import ShapeView
from kube import Key

HOST = "kubernetes.io/hostname"


def selector(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def near(key: str, **labels: str) -> dict[str, Any]:
    term = {"labelSelector": selector(**labels), "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apart(key: str, **labels: str) -> dict[str, Any]:
    term = {"labelSelector": selector(**labels), "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str, skew: int = 1, **parts: Any) -> dict[str, Any]:
    rule = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **parts}
    return rule | {"labelSelector": selector(app="web")}


def test_the_fullest_node_that_fits_is_taken_and_the_name_decides_between_equals(toy: Any) -> None:
    for name in ("c", "b", "a"):
        toy.node(name, cpu=4)
    toy.pods("used", cpu=1, node="b")
    toy.pods("p-1", cpu=2)
    toy.settle()
    assert toy.where("p-1") == "b"
    toy.pods("p-2", cpu=2)
    toy.settle()
    assert toy.where("p-2") == "a"


def test_the_name_decides_between_equals_also_when_other_nodes_are_gone(toy: Any) -> None:
    for name in ("c", "b", "a"):
        toy.node(name, cpu=4)
    toy.pods("p-1", cpu=1)
    toy.settle()
    assert toy.where("p-1") == "a"
    toy.delete(Key("Pod", "default", "p-1"), Key("Node", "", "a"))
    toy.node("c", cpu=4, labels={"new": "label"})
    toy.pods("p-2", cpu=1)
    toy.settle()
    assert toy.where("p-2") == "b"


@given(st.lists(st.tuples(st.sampled_from(["come", "end", "shrink"]), st.integers(1, 4)), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_best_node_that_is_kept_is_the_one_that_would_be_found(new_toy: Any, steps: list[tuple[str, int]]) -> None:
    toy = new_toy()
    for number in range(5):
        toy.node(f"n{number}", cpu=3 + number % 3)
    toy.pods("first", cpu=1)
    toy.settle()
    for number, (what, amount) in enumerate(steps):
        if what == "come":
            toy.pods(f"p{number}", cpu=amount)
        elif what == "end" and (running := sorted(toy.bound())):
            toy.finish(running[number % len(running)])
        else:
            toy.node(f"n{amount}", cpu=amount)
        toy.settle()
        room = toy.core.cluster.room
        for shape in list(room.foresight.census.counts):
            view = room.views.of(shape)
            fresh = ShapeView(shape, room.table, view.placement, room.foresight).sync()
            assert view.best() == fresh.best() == view.best()
            assert view.inside(room.table.exists).best() == fresh.best()


def test_nodes_looked_at_part_by_part_are_chosen_like_all_at_once(
    new_toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bound() -> dict[str, str]:
        toy = new_toy()
        for number in range(14):
            cards = {"nvidia.com/gpu": number % 3 * 2} if number % 3 else {}
            toy.node(f"n{number:02}", cpu=16 + number % 5, memory="64Gi", **cards)
        for number in range(40):
            cards = {"nvidia.com/gpu": 1 + number % 2} if number % 4 else {}
            requests = {"cpu": 1 + number % 3, "memory": f"{1 + number}Gi", **cards}
            toy.pods(f"p{number:02}", containers=[{"resources": {"requests": requests}}])
            toy.settle()
        assert toy.core.cluster.room.foresight.version, "nodes with cards are scored by what they are good for"
        return {name: toy.where(name) for name in toy.bound()}

    at_once = bound()
    monkeypatch.setattr(vectors, "_PART", 5)
    assert bound() == at_once


def test_spreading_takes_the_emptiest_node(new_toy: Any) -> None:
    toy = new_toy()
    toy.core = type(toy.core)(placement="spread")
    for name in ("a", "b"):
        toy.node(name, cpu=4)
    toy.group("g", 4)
    toy.pods("p", 4, group="g", cpu=1)
    toy.settle()
    assert [toy.where(f"p-{number}") for number in range(4)] == ["a", "b", "a", "b"]


def test_pods_that_need_no_device_stay_off_the_nodes_that_have_some(toy: Any) -> None:
    toy.node("a-gpu", cpu=4, gpu=2)
    toy.node("b", cpu=4)
    toy.pods("p", cpu=1)
    toy.settle()
    assert toy.where("p") == "b"


@pytest.mark.parametrize(
    ("expression", "node"),
    [
        ({"key": "size", "operator": "In", "values": ["1", "3"]}, "n1"),
        ({"key": "size", "operator": "NotIn", "values": ["1", "2"]}, "n3"),
        ({"key": "disk", "operator": "Exists"}, "n2"),
        ({"key": "size", "operator": "Gt", "values": ["2"]}, "n3"),
        ({"key": "size", "operator": "Lt", "values": ["2"]}, "n1"),
        ({"key": "disk", "operator": "DoesNotExist"}, "n1"),
    ],
)
def test_required_node_affinity_knows_every_operator(toy: Any, expression: dict[str, Any], node: str) -> None:
    toy.node("n1", cpu=4, labels={"size": "1"})
    toy.node("n2", cpu=4, labels={"size": "2", "disk": "ssd"})
    toy.node("n3", cpu=4, labels={"size": "3", "disk": "hdd"})
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    toy.pods("p", cpu=1, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
    toy.settle()
    assert toy.where("p") == node


def test_a_pod_may_name_its_node(toy: Any) -> None:
    for name in ("a", "b", "c"):
        toy.node(name, cpu=4)
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    toy.pods("p", cpu=1, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
    toy.settle()
    assert toy.where("p") == "b"


def test_preferred_node_affinity_outweighs_packing(toy: Any) -> None:
    toy.node("a", cpu=4)
    toy.node("b", cpu=4, labels={"disk": "ssd"})
    toy.pods("used", cpu=2, node="a")
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    rules = [{"weight": 10, "preference": preference}]
    toy.pods("p", cpu=1, affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rules}})
    toy.settle()
    assert toy.where("p") == "b"


def test_taints_keep_out_who_does_not_tolerate_them(toy: Any) -> None:
    taint = {"key": "team", "value": "ml", "effect": "NoSchedule"}
    toy.node("a", cpu=4, spec={"taints": [taint]})
    toy.pods("p", cpu=1)
    toy.settle()
    assert (
        toy.message("p") == "0/1 nodes are available: 1 node(s) had untolerated taint {team: ml} (team=ml:NoSchedule)."
    )
    toy.pods("q", cpu=1, tolerations=[{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}])
    toy.settle()
    assert toy.where("q") == "a"
    toy.node("a", cpu=4)
    toy.settle()
    assert toy.where("p") == "a"


def test_a_soft_taint_is_avoided_if_it_can_be(toy: Any) -> None:
    toy.node("a", cpu=2, spec={"taints": [{"key": "old", "effect": "PreferNoSchedule"}]})
    toy.node("b", cpu=1)
    toy.pods("p", 2, cpu=1)
    toy.settle()
    assert [toy.where("p-0"), toy.where("p-1")] == ["b", "a"]


def test_cordoned_and_unready_nodes_take_nothing_new(toy: Any) -> None:
    toy.node("a", cpu=4, spec={"unschedulable": True})
    toy.pods("p", cpu=1)
    toy.settle()
    assert "1 node(s) were unschedulable (cordoned)" in toy.message("p")
    toy.node("a", cpu=4)
    toy.settle()
    assert toy.where("p") == "a"


def test_the_message_names_the_selector_and_the_resource_that_are_missing(toy: Any) -> None:
    toy.node("n1", cpu=4, labels={"disk": "fast"})
    toy.node("n2", cpu=4)
    toy.node("n3", cpu=4)
    toy.pods("used", cpu="2500m", node="n1")
    toy.pods("p", cpu=2, nodeSelector={"disk": "fast"})
    toy.settle()
    assert toy.message("p") == (
        "0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector "
        "(lack the label disk=fast of the node selector), 1 Insufficient cpu (needs 2, most free 1500m on n1)."
    )
    answer = toy.explain("Pod", "p")
    assert (answer["verdict"], answer["need"]["cpu"], answer["have"]["cpu"]) == ("Waiting", "2", "1500m")


def test_a_gang_that_keeps_apart_waits_for_a_node_each(toy: Any) -> None:
    for number in (1, 2):
        toy.node(f"n{number}", cpu=4)
    toy.group("g", 3)
    toy.pods("g", 3, group="g", cpu=1, labels={"app": "db"}, affinity=apart(HOST, app="db"))
    toy.settle()
    assert toy.bound() == []
    assert "pod anti-affinity" in toy.message("g-0")
    toy.node("n3", cpu=4)
    toy.settle()
    assert {toy.where(f"g-{number}") for number in range(3)} == {"n1", "n2", "n3"}


def test_pods_that_run_keep_others_away(toy: Any) -> None:
    toy.node("a", cpu=4)
    toy.node("b", cpu=4)
    toy.pods("lonely", cpu=1, node="a", affinity=apart(HOST, app="web"))
    toy.pods("web", cpu=1, labels={"app": "web"})
    toy.settle()
    assert toy.where("web") == "b"
    toy.delete(toy.pod("lonely").key)
    toy.pods("web-2", cpu=4, labels={"app": "web"})
    toy.settle()
    assert toy.where("web-2") == "a"


def test_one_pod_has_to_meet_every_term_of_a_required_affinity(toy: Any) -> None:
    for name, zone in (("a", "x"), ("b", "y")):
        toy.node(name, cpu=8, labels={"zone": zone, HOST: name})
    toy.pods("cache", cpu=1, labels={"app": "cache"}, node="a")
    toy.pods("fast", cpu=1, labels={"tier": "fast"}, node="a")
    both = near("zone", app="cache")["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    both += near(HOST, tier="fast")["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    toy.pods("p", cpu=1, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": both}})
    toy.settle()
    assert toy.where("p") == ""

    toy.pods("fast-cache", cpu=1, labels={"app": "cache", "tier": "fast"}, node="b")
    toy.settle()
    assert toy.where("p") == "b"


def test_the_first_pod_of_a_set_by_two_terms_may_go_anywhere_if_it_belongs_to_it(toy: Any) -> None:
    toy.node("a", cpu=8, labels={"zone": "x"})
    toy.pods("cache", cpu=1, labels={"app": "cache"}, node="a")
    both = near("zone", app="cache")["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    both += near("zone", tier="fast")["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    wishes = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": both}}
    toy.pods("stranger", cpu=1, affinity=wishes)
    toy.settle()
    assert toy.where("stranger") == ""

    toy.pods("first", cpu=1, labels={"app": "cache", "tier": "fast"}, affinity=wishes)
    toy.settle()
    assert toy.where("first") == "a"
    assert toy.where("stranger") == "a"


def test_a_pod_follows_the_pods_that_it_wants_near(toy: Any) -> None:
    toy.node("a", cpu=4, labels={"zone": "z1"})
    toy.node("b", cpu=1, labels={"zone": "z2"})
    toy.node("c", cpu=4, labels={"zone": "z2"})
    toy.pods("cache", cpu=1, node="b", labels={"app": "cache"})
    toy.pods("p", cpu=1, affinity=near("zone", app="cache"))
    toy.pods("q", cpu=1, affinity=near("zone", app="nothing"))
    toy.settle()
    assert toy.where("p") == "c"
    assert toy.where("q") == ""
    toy.pods("nothing", cpu=1, labels={"app": "nothing"})
    toy.settle()
    assert toy.where("q") != ""


def test_a_gang_that_stays_together_takes_the_domain_that_holds_all_of_it(toy: Any) -> None:
    """The fullest node alone would lead it into the zone that is too small."""
    toy.node("a", cpu=2, labels={"zone": "small"})
    toy.node("b", cpu=8, labels={"zone": "large"})
    toy.group("g", 3)
    toy.pods("g", 3, group="g", cpu=1, labels={"app": "g"}, affinity=near("zone", app="g"))
    toy.settle()
    assert {toy.where(f"g-{number}") for number in range(3)} == {"b"}


def test_apart_in_two_ways_is_found_by_searching(toy: Any) -> None:
    """Taking the fullest node first would use row r1 and rack x for one pod and leave no pair for the second."""
    for name, row, rack, cpu in (("a", "r1", "x", 2), ("b", "r1", "y", 4), ("c", "r2", "x", 4)):
        toy.node(name, cpu=cpu, labels={"row": row, "rack": rack})
    rules = [*apart("row", app="g").values(), *apart("rack", app="g").values()]
    terms = [term for rule in rules for term in rule["requiredDuringSchedulingIgnoredDuringExecution"]]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1, labels={"app": "g"}, affinity=affinity)
    toy.settle()
    assert {toy.where("g-0"), toy.where("g-1")} == {"b", "c"}


def test_hard_spread_keeps_the_skew(toy: Any) -> None:
    toy.node("a", cpu=8, labels={"zone": "z1"})
    toy.node("b", cpu=8, labels={"zone": "z2"})
    toy.node("c", cpu=1, labels={"zone": "z3"})
    toy.pods("web", 6, cpu=1, labels={"app": "web"}, topologySpreadConstraints=[spread("zone")])
    toy.settle()
    counts = [sum(toy.where(name) == node for name in toy.bound()) for node in "abc"]
    assert counts == [2, 2, 1]
    assert "skew over zone" in toy.message("web-5")


def test_too_few_domains_count_as_an_empty_one(toy: Any) -> None:
    toy.node("a", cpu=8, labels={"zone": "z1"})
    toy.node("b", cpu=8, labels={"zone": "z2"})
    rule = spread("zone", minDomains=3)
    toy.pods("web", 3, cpu=1, labels={"app": "web"}, topologySpreadConstraints=[rule])
    toy.settle()
    assert len(toy.bound()) == 2


def test_soft_spread_prefers_the_domain_with_fewer(toy: Any) -> None:
    toy.node("a", cpu=8, labels={"zone": "z1"})
    toy.node("b", cpu=8, labels={"zone": "z2"})
    toy.pods("old", cpu=1, node="a", labels={"app": "web"})
    rule = spread("zone", whenUnsatisfiable="ScheduleAnyway")
    toy.pods("web", 2, cpu=1, labels={"app": "web"}, topologySpreadConstraints=[rule])
    toy.settle()
    assert toy.where("web-0") == "b"


def test_a_host_port_is_taken_once_a_node(toy: Any) -> None:
    toy.node("a", cpu=8)
    toy.node("b", cpu=8)
    containers = [{"name": "c", "ports": [{"hostPort": 80}]}]
    toy.pods("p", 3, containers=containers)
    toy.settle()
    assert len(toy.bound()) == 2
    assert "80/TCP" in toy.message("p-2")


def test_a_sidecar_holds_its_host_port_and_an_init_container_does_not(toy: Any) -> None:
    toy.node("a", cpu=8)
    ports = [{"hostPort": 80}]
    toy.pods("setup", initContainers=[{"name": "i", "ports": ports}])
    toy.pods("sidecar", initContainers=[{"name": "i", "restartPolicy": "Always", "ports": ports}])
    toy.settle()
    toy.pods("late", containers=[{"name": "c", "ports": ports}])
    toy.settle()
    assert toy.bound() == ["setup", "sidecar"]
    assert "80/TCP" in toy.message("late")


def test_a_limit_of_the_pod_is_a_request_where_its_containers_make_none(toy: Any) -> None:
    """Kubernetes' rule: what containers request together goes before the limit of the pod as a whole."""
    toy.node("n", cpu=4, memory="4Gi")
    whole = {"limits": {"cpu": 4, "memory": "3Gi"}}
    toy.pods("p", cpu=1, resources=whole)
    toy.settle()
    toy.pods("small", cpu=3, memory="1Gi")
    toy.settle()
    toy.pods("none-left", memory="1")
    toy.settle()
    assert toy.bound() == ["p", "small"]


def test_init_containers_sidecars_and_overhead_count(toy: Any) -> None:
    toy.node("n", cpu=4)
    init = [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "setup", "resources": {"requests": {"cpu": 3}}},
    ]
    toy.pods("p", cpu=1, initContainers=init, overhead={"cpu": "500m"})
    toy.settle()
    toy.pods("none-left", cpu="1m")
    toy.settle()
    assert toy.bound() == ["p"]


def test_a_node_that_shrinks_below_its_use_takes_nothing_and_breaks_nothing(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("p", cpu=4)
    toy.settle()
    toy.node("n", cpu=2)
    toy.pods("q", cpu=1)
    toy.settle()
    assert toy.where("q") == ""
    toy.finish("p")
    toy.settle()
    assert toy.where("q") == "n"


def test_a_node_that_comes_back_has_its_pods_again(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("p", cpu=3)
    toy.pods("stray", cpu=1, node="nowhere")
    toy.settle()
    toy.delete(toy.store.of_kind("Node")[next(iter(toy.store.of_kind("Node")))].key)
    toy.settle()
    toy.node("n", cpu=4)
    toy.pods("q", cpu=2)
    toy.settle()
    assert toy.where("q") == ""


def test_pods_of_other_schedulers_are_left_alone_but_their_room_is_taken(toy: Any) -> None:
    toy.queues = {"default": {"capability": {"cpu": 4}}}
    toy.node("n", cpu=8)
    toy.pods("theirs", cpu=4, node="n", schedulerName="my-own")
    toy.pods("waiting", cpu=1, schedulerName="my-own")
    toy.pods("ours", 2, cpu=4)
    toy.settle()
    assert toy.bound() == ["ours-0", "theirs"]
