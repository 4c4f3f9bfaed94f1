"""Normalised cores and amplified amounts: by the model of the CPU, and only where that is configured."""

import json

import pytest

from kube import Key
from slo_controller.domain.configuration.parts import PARTS
from slo_controller.domain.configuration.strategy import read_strategy

NORMALIZATION = "node.koordinator.sh/cpu-normalization-ratio"
AMPLIFICATION = "node.koordinator.sh/resource-amplification-ratio"
INFO = "node.koordinator.sh/cpu-basic-info"
MODEL = {
    "baseRatio": 1.1,
    "turboEnabledRatio": 1.2,
    "hyperThreadEnabledRatio": 1.3,
    "hyperThreadTurboEnabledRatio": 1.456,
}
ON = json.dumps({"enable": True, "ratioModel": {"X": MODEL}})


def annotation(toy, name: str, node: str = "n") -> str | None:
    return toy.store.objects[Key("Node", "", node)].annotations.get(name)


def info(model: str = "X", **more: bool) -> dict[str, str]:
    return {INFO: json.dumps({"cpuModel": model, **more})}


@pytest.mark.parametrize(
    ("more", "ratio"),
    [
        ({}, "1.10"),
        ({"turboEnabled": True}, "1.20"),
        ({"hyperThreadEnabled": True}, "1.30"),
        ({"hyperThreadEnabled": True, "turboEnabled": True}, "1.45"),
    ],
)
def test_the_ratio_is_that_of_the_model_as_it_runs(toy, more: dict[str, bool], ratio: str) -> None:
    toy.configure(cpu_normalization_config=ON)
    toy.node(annotations=info(**more))
    toy.use()
    toy.settle()
    assert annotation(toy, NORMALIZATION) == ratio
    toy.advance(300_000)
    assert toy.lent("batch-cpu") == round(60_000 * float(ratio))


def test_a_model_without_a_ratio_leaves_the_node_as_it_is_and_says_so(toy) -> None:
    toy.configure(cpu_normalization_config=ON)
    toy.node(annotations={**info("Y"), NORMALIZATION: "1.30"})
    toy.use()
    toy.settle()
    assert annotation(toy, NORMALIZATION) == "1.30"
    assert "no baseRatio of the model 'Y'" in toy.core.query("explain", {"name": "n"})["message"]


@pytest.mark.parametrize(("model", "ratio"), [("X", "1.10"), ("Y", "1.05"), ("", "1.05")])
def test_a_model_that_nobody_named_has_the_default_ratio_where_there_is_one(toy, model: str, ratio: str) -> None:
    toy.configure(cpu_normalization_config=json.dumps({**json.loads(ON), "defaultRatio": 1.05}))
    toy.node(annotations=info(model))
    toy.settle()
    assert annotation(toy, NORMALIZATION) == ratio


def test_the_cpu_may_be_told_by_the_topology(toy) -> None:
    toy.configure(cpu_normalization_config=ON)
    toy.node()
    api = {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology"}
    toy.settle()
    toy.put({**api, "metadata": {"name": "n", "annotations": info()}})
    toy.settle()
    assert annotation(toy, NORMALIZATION) == "1.10"


def test_a_node_may_stay_out_of_it(toy) -> None:
    toy.configure(cpu_normalization_config=ON)
    toy.node(annotations=info(), labels={"node.koordinator.sh/cpu-normalization-enabled": "false"})
    toy.settle()
    assert annotation(toy, NORMALIZATION) == "1.00"


def test_what_nobody_configured_is_left_alone(make_toy) -> None:
    toy = make_toy()
    toy.node(annotations={NORMALIZATION: "2.00", AMPLIFICATION: '{"cpu":3}'})
    assert toy.settle() == []


def test_amounts_are_amplified_and_cpu_by_what_its_cores_do_besides(toy) -> None:
    amplified = json.dumps({"enable": True, "resourceAmplificationRatio": {"cpu": 1.5, "memory": 1.2}})
    toy.configure(cpu_normalization_config=ON, resource_amplification_config=amplified)
    toy.node(annotations=info())
    toy.settle()
    assert annotation(toy, AMPLIFICATION) == '{"cpu":1.65,"memory":1.2}'
    toy.configure(cpu_normalization_config=ON, resource_amplification_config='{"enable": false}')
    toy.settle()
    assert annotation(toy, AMPLIFICATION) is None


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("cpu-normalization-config", {"ratioModel": {"X": {"baseRatio": 0.9}}}),
        ("cpu-normalization-config", {"ratioModel": {"X": {"baseRatio": "1.2"}}}),
        ("cpu-normalization-config", {"ratioModel": {"X": {"turboEnabledRatio": 5.1}}}),
        ("cpu-normalization-config", {"defaultRatio": 0.9}),
        ("resource-amplification-config", {"resourceAmplificationRatio": {"cpu": 0.5}}),
        ("resource-amplification-config", {"resourceAmplificationRatio": 2}),
    ],
)
def test_ratios_that_make_no_sense_are_refused(key: str, content: object) -> None:
    with pytest.raises(ValueError, match=r"has to be"):
        read_strategy(json.dumps(content), PARTS[key], PARTS[key].defaults)
