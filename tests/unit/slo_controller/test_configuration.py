"""The ConfigMap: strategies over each other, the first that selects a node, and what makes no sense kept out."""

import json

import pytest

from kube import Store
from slo_controller.domain import SloPolicy
from slo_controller.domain.configuration.parts import NODE_SLO, PARTS
from slo_controller.domain.configuration.strategy import read_strategy

THRESHOLDS = PARTS["resource-threshold-config"]


def on(labels: dict[str, str], **content: object) -> dict[str, object]:
    """What holds on a node with these labels."""
    return read_strategy(json.dumps(content), THRESHOLDS, THRESHOLDS.defaults).on(labels)


def test_a_strategy_is_laid_over_the_defaults_and_one_of_nodes_over_it() -> None:
    nodes = [
        {"name": "a", "nodeSelector": {"matchLabels": {"pool": "big"}}, "cpuSuppressThresholdPercent": 80},
        {"name": "b", "nodeSelector": {"matchLabels": {"pool": "big"}}, "cpuSuppressThresholdPercent": 90},
    ]
    cluster = {"enable": True, "memoryEvictThresholdPercent": 75}
    big = on({"pool": "big"}, clusterStrategy=cluster, nodeStrategies=nodes)
    small = on({}, clusterStrategy=cluster, nodeStrategies=nodes)
    assert (big["cpuSuppressThresholdPercent"], small["cpuSuppressThresholdPercent"]) == (80, 65)
    assert big["enable"] is True and big["memoryEvictThresholdPercent"] == 75
    assert small["cpuSuppressPolicy"] == "cpuset" and "nodeSelector" not in big and "name" not in big


@pytest.mark.parametrize("key", PARTS)
def test_every_key_may_say_nothing_or_its_defaults(key: str) -> None:
    part = PARTS[key]
    for said in ({}, part.defaults):
        text = json.dumps({part.cluster: said} if part.cluster else said)
        assert read_strategy(text, part, part.defaults).cluster == part.defaults


EVERYTHING = {
    "colocation-config": {
        "enable": True,
        "cpuReclaimThresholdPercent": 150,
        "batchMemoryThresholdPercent": 80,
        "resourceDiffThreshold": 0.2,
        "midReclaimMode": "static",
        "extensions": {"any": {"thing": [1]}},
    },
    "resource-threshold-config": {
        "clusterStrategy": {"cpuEvictBESatisfactionLowerPercent": 20, "cpuSuppressMinPercent": 5}
    },
    "resource-qos-config": {
        "clusterStrategy": {
            "policies": {"cpuPolicy": "groupIdentity", "netQOSPolicy": "tc"},
            "lsClass": {"memoryQOS": {"enable": True, "wmarkRatio": 80, "minLimitPercent": 10}},
            "beClass": {
                "cpuQOS": {"enable": True, "groupIdentity": -1, "schedIdle": 1},
                "blkioQOS": {"enable": True, "blocks": [{"name": "vda", "type": "device", "ioCfg": {"readIOPS": 100}}]},
                "networkQOS": {"ingressRequest": 10, "ingressLimit": "50M"},
            },
        }
    },
    "cpu-burst-config": {
        "clusterStrategy": {"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPeriodSeconds": -1}
    },
    "system-config": {
        "clusterStrategy": {"minFreeKbytesFactor": 100, "watermarkScaleFactor": 150, "totalNetworkBandwidth": "10G"}
    },
}


@pytest.mark.parametrize("key", EVERYTHING)
def test_what_koordinators_manual_shows_is_taken(key: str) -> None:
    read_strategy(json.dumps(EVERYTHING[key]), PARTS[key], PARTS[key].defaults)


def test_what_is_null_says_nothing() -> None:
    assert on({}, clusterStrategy={"cpuSuppressThresholdPercent": None})["cpuSuppressThresholdPercent"] == 65


def test_expressions_select_nodes_too() -> None:
    nodes = [{"nodeSelector": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, "enable": True}]
    assert on({"gpu": ""}, nodeStrategies=nodes)["enable"] and not on({}, nodeStrategies=nodes)["enable"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting"),
        ("[]", "is no mapping"),
        ('{"clusterStrategy": {"enable": "yes"}}', "enable is 'yes'; it has to be true or false"),
        ('{"clusterStrategy": {"cpuSuppressThresholdPercent": 101}}', "from 0 to 100"),
        ('{"clusterStrategy": {"cpuSuppressThresholdPercent": 60.5}}', "a whole number"),
        ('{"clusterStrategy": {"cpuSuppressPolicy": "both"}}', "one of cpuset, cfsQuota, weight"),
        ('{"clusterStrategy": {"memoryEvictThresholdPercent": 60, "memoryEvictLowerPercent": 60}}', "below"),
        ('{"nodeStrategies": {}}', "nodeStrategies is {}; it has to be a list"),
        ('{"nodeStrategies": [{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In?"}]}}]}', "In?"),
        ('{"nodeStrategies": [{"nodeSelector": {"matchExpressions": ["a"]}}]}', "is no selector"),
        ('{"nodeStrategies": ["a"]}', "it has to be a list of mappings"),
        ('{"nodeStrategies": [{"cpuSuppressThresholdPercent": -1}]}', "nodeStrategies[0].cpuSuppressThresholdPercent"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?").replace("[", r"\[")):
        read_strategy(text, THRESHOLDS, THRESHOLDS.defaults)


def test_a_limit_of_nodes_is_compared_with_that_of_the_cluster() -> None:
    """The mark of the nodes alone is fine; over the cluster's it is not."""
    cluster = {"memoryEvictThresholdPercent": 60}
    with pytest.raises(ValueError, match=r"nodeStrategies\[0\]"):
        on({}, clusterStrategy=cluster, nodeStrategies=[{"memoryEvictLowerPercent": 65}])


def test_what_an_operator_chose_is_checked_at_the_start() -> None:
    with pytest.raises(ValueError, match=r"colocation\.cpuCalculatePolicy"):
        SloPolicy.of({"cpuCalculatePolicy": "request"}, {})
    with pytest.raises(ValueError, match=r"node_slo\.cpuBurstStrategy\.policy"):
        SloPolicy.of({}, {"cpuBurstStrategy": {"policy": "some"}})


GOOD = '{"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": 55}}'


def suppressed_at(toy) -> object:
    return toy.slo().spec["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"]


def test_bad_content_is_told_once_and_the_last_good_stays_in_force(toy) -> None:
    toy.node()
    toy.configure(resource_threshold_config=GOOD)
    toy.settle()
    toy.configure(resource_threshold_config=GOOD[:-3], cpu_burst_config='{"clusterStrategy": {"policy": "auto"}}')
    (told, changed) = toy.settle()
    assert told.name == "SloConfigRefused" and "the content before it stays in force" in told.message
    assert changed.name == "NodeSLOComputed" and suppressed_at(toy) == 55
    assert toy.slo().spec["cpuBurstStrategy"]["policy"] == "auto"
    assert toy.advance(600_000) == []


def test_bad_content_stays_out_and_told_after_a_restart(toy) -> None:
    toy.node()
    toy.configure(resource_threshold_config=GOOD)
    toy.settle()
    toy.configure(resource_threshold_config="{")
    toy.settle()
    toy.restart()
    toy.node("m")
    assert [decision.name for decision in toy.settle()] == ["NodeSLOComputed"]
    assert toy.slo("m").spec == toy.slo("n").spec and suppressed_at(toy) == 55


def test_other_bad_content_is_told_anew(toy) -> None:
    toy.configure(resource_threshold_config="{")
    assert "(the default stays in force)" in toy.settle()[0].message
    toy.configure(resource_threshold_config="[")
    assert len(toy.settle()) == 1
    toy.configure(resource_threshold_config=GOOD)
    assert toy.settle() == []


def test_what_is_refused_stands_on_the_config_map_until_it_is_mended(toy) -> None:
    toy.configure(resource_threshold_config="{")
    toy.settle()
    item = next(iter(toy.store.of_kind("ConfigMap").values()))
    assert item.annotations["tidegate.dev/refused"].startswith("resource-threshold-config: Expecting")
    toy.put({**item.manifest(), "data": {"resource-threshold-config": GOOD}})
    assert [decision.name for decision in toy.settle()] == ["SloConfigMended"]
    assert next(iter(toy.store.of_kind("ConfigMap").values())).annotations == {}


def test_without_the_config_map_nothing_of_it_holds(make_toy) -> None:
    toy = make_toy()
    toy.node()
    toy.configure(resource_threshold_config=GOOD)
    toy.settle()
    config_map = next(iter(toy.store.of_kind("ConfigMap")))
    toy.remove(config_map)
    assert [decision.name for decision in toy.settle()] == ["NodeSLOComputed"]
    assert toy.slo().spec == {**NODE_SLO, "hostApplications": []}
    assert isinstance(toy.store, Store)
