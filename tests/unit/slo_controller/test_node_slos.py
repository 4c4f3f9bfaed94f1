"""NodeSLOs: made for each node, changed with the strategies, and never against who wrote one."""

from typing import Any

from kube import Key
from kube.merge import merge, replacement
from kube.node_slo import DEFAULTS, completed

CONFIG = '{"clusterStrategy": {"enable": true}}'
API = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": "n"}}


def test_without_a_word_of_anybody_no_node_has_rules_and_one_that_lends_has_the_defaults(make_toy) -> None:
    toy = make_toy()
    toy.node()
    toy.node("lends", labels={"koordinator.sh/colocation": "true"})
    toy.settle()
    assert toy.slo() is None and toy.slo("lends").spec == {**DEFAULTS, "hostApplications": []}


def test_a_node_has_the_defaults_of_all_that_is_not_said(toy) -> None:
    toy.node()
    toy.configure(resource_threshold_config=CONFIG)
    toy.settle()
    spec = toy.slo().spec
    assert spec["cpuBurstStrategy"] == DEFAULTS["cpuBurstStrategy"] and spec["hostApplications"] == []
    assert completed(spec) == spec
    assert toy.slo().metadata["ownerReferences"][0]["name"] == "n"


def test_what_an_operator_chose_holds_under_the_config_map(make_toy) -> None:
    toy = make_toy(node_slo={"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 40}})
    toy.node()
    toy.settle()
    assert toy.slo().spec["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == 40
    toy.configure(resource_threshold_config='{"clusterStrategy": {"cpuSuppressThresholdPercent": 50}}')
    toy.settle()
    thresholds = toy.slo().spec["resourceUsedThresholdWithBE"]
    assert (thresholds["cpuSuppressThresholdPercent"], thresholds["enable"]) == (50, True)


def test_the_labels_of_a_node_choose_its_strategy_as_they_change(toy) -> None:
    nodes = '[{"nodeSelector": {"matchLabels": {"a": "b"}}, "cpuSuppressThresholdPercent": 80}]'
    toy.configure(resource_threshold_config=f'{{"nodeStrategies": {nodes}}}')
    toy.node()
    toy.settle()
    toy.node(labels={"a": "b"})
    (decision,) = toy.settle()
    assert decision.mutations[0].patch["spec"] == {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 80}}


def test_how_often_a_node_tells_its_use_is_a_rule_of_it(toy) -> None:
    """The default leaves it to the agents."""
    nodes = '[{"nodeSelector": {"matchLabels": {"a": "b"}}, "metricReportIntervalSeconds": 5}]'
    toy.configure(colocation_config=f'{{"enable": true, "nodeConfigs": {nodes}}}')
    toy.node(labels={"a": "b"})
    toy.node("m")
    toy.settle()
    assert toy.slo().spec["extensions"] == {"metricReportIntervalSeconds": 5} and "extensions" not in toy.slo("m").spec


def test_the_bandwidth_of_a_node_is_its_own(toy) -> None:
    toy.configure(system_config='{"clusterStrategy": {"totalNetworkBandwidth": "10G"}}')
    toy.node(annotations={"node.koordinator.sh/network-bandwidth": "25G"})
    toy.node("m")
    toy.settle()
    bandwidths = [toy.slo(name).spec["systemStrategy"]["totalNetworkBandwidth"] for name in ("n", "m")]
    assert bandwidths == ["25G", "10G"]


def test_applications_of_a_node_replace_those_of_the_cluster(toy) -> None:
    ours = '{"name": "proxy", "qos": "LS"}'
    of_nodes = '{"nodeSelector": {"matchLabels": {"a": "b"}}, "applications": [{"name": "cache"}]}'
    toy.configure(host_application_config=f'{{"applications": [{ours}], "nodeConfigs": [{of_nodes}]}}')
    toy.node()
    toy.node("m", labels={"a": "b"})
    toy.settle()
    assert toy.slo("n").spec["hostApplications"] == [{"name": "proxy", "qos": "LS"}]
    assert toy.slo("m").spec["hostApplications"] == [{"name": "cache"}]


def test_what_a_user_wrote_wins(toy) -> None:
    toy.node()
    toy.put({**API, "spec": {"resourceUsedThresholdWithBE": {"enable": False}}})
    toy.configure(resource_threshold_config=CONFIG)
    assert toy.settle() == []


def test_what_a_user_changed_wins_until_it_is_deleted(toy) -> None:
    toy.node()
    toy.configure(resource_threshold_config=CONFIG)
    toy.settle()
    computed = toy.slo()
    toy.put({**computed.manifest(), "spec": {**computed.spec, "hostApplications": [{"name": "mine"}]}})
    toy.configure(resource_threshold_config='{"clusterStrategy": {"enable": false}}')
    assert toy.settle() == []
    toy.remove(Key(computed.kind, "", "n"))
    toy.settle()
    assert toy.slo().spec["hostApplications"] == []


def test_a_patch_makes_one_mapping_into_another() -> None:
    old: dict[str, Any] = {"a": 1, "b": {"c": 1, "d": [1]}, "e": {"f": 1}}
    new: dict[str, Any] = {"b": {"c": 2, "d": [1]}, "e": 5, "g": {"h": 1}}
    assert merge(old, replacement(old, new)) == new and replacement(new, new) == {}
