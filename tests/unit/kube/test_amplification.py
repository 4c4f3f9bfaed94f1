"""Amplified amounts: what a node has times its ratios, whatever it reports, and again what it has when they go."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.domain.node_review import answer_node
from kube import merge
from kube.amplification import RATIOS, RAW, amplified

ON = {RATIOS: '{"cpu":1.5,"memory":1.5}'}


def step(annotations: dict[str, str], allocatable: dict[str, Any], reported: dict[str, Any]) -> tuple[Any, Any]:
    """Both after the change."""
    told, amounts = amplified(annotations, allocatable, reported)
    return merge(annotations, told), {**allocatable, **amounts}


def test_amounts_are_amplified_once_and_what_the_node_has_is_kept() -> None:
    annotations, amounts = step(ON, {"cpu": "8", "memory": "10Gi", "pods": "110"}, {})
    assert amounts == {"cpu": "12", "memory": "15Gi", "pods": "110"}
    assert json.loads(annotations[RAW]) == {"cpu": "8", "memory": "10Gi"}
    assert amplified(annotations, amounts, {}) == ({}, {})


def test_what_a_node_reports_is_what_it_has() -> None:
    annotations, amounts = step(ON, {"cpu": "8", "memory": "10Gi"}, {})
    annotations, amounts = step(annotations, {**amounts, "cpu": "6"}, {"cpu": "6"})
    assert amounts["cpu"] == "9" and amounts["memory"] == "15Gi"


def test_without_ratios_a_node_gives_out_what_it_has() -> None:
    annotations, amounts = step(ON, {"cpu": "8", "memory": "10Gi"}, {})
    del annotations[RATIOS]
    annotations, amounts = step(annotations, amounts, {})
    assert amounts == {"cpu": "8", "memory": "10Gi"} and RAW not in annotations
    assert amplified({}, {"cpu": "8"}, {"cpu": "8"}) == ({}, {})


@pytest.mark.parametrize("text", ["{", "[]", '{"cpu": "much"}', '{"cpu": 0.5}', '{"nvidia.com/gpu": 2}'])
def test_ratios_that_make_no_sense_change_nothing(text: str) -> None:
    assert amplified({RATIOS: text}, {"cpu": "8"}, {}) == ({}, {})
    assert amplified({**ON, RAW: '{"cpu": "x"}'}, {"cpu": "8"}, {}) == ({}, {})


@given(st.integers(1, 1000), st.integers(1000, 5000), st.lists(st.integers(1, 1000), max_size=4))
def test_after_any_reports_it_is_the_last_times_the_ratio(cpus: int, milli: int, reports: list[int]) -> None:
    annotations, amounts = step({RATIOS: json.dumps({"cpu": milli / 1000})}, {"cpu": str(cpus)}, {})
    for cpus in reports:
        annotations, amounts = step(annotations, {"cpu": str(cpus)}, {"cpu": str(cpus)})
    wanted = cpus * milli
    assert amounts["cpu"] in (str(wanted // 1000), f"{wanted}m")


def test_a_kubelet_that_says_what_it_has_is_answered_with_the_amplified_amounts() -> None:
    """It compares with what it read, and says it again each time; what it says besides stays as it is."""

    def asked(old: dict[str, str], new: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
        request = {
            "uid": "r",
            "object": {"metadata": {"annotations": annotations}, "status": {"allocatable": new}},
            "oldObject": {"status": {"allocatable": old}},
        }
        response = answer_node({"apiVersion": "admission.k8s.io/v1", "request": request})["response"]
        operations = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        return {one["path"]: one["value"] for one in operations}

    told = asked({"cpu": "8"}, {"cpu": "8", "pods": "9"}, {RATIOS: '{"cpu":1.5}'})
    assert told["/status/allocatable"] == {"cpu": "12", "pods": "9"}
    known = told["/metadata/annotations"]
    assert asked({"cpu": "12"}, {"cpu": "12"}, known) == {}
    assert asked({"cpu": "12"}, {"cpu": "8"}, known) == {"/status/allocatable": {"cpu": "12"}}
    assert asked({"cpu": "12"}, {"cpu": "6"}, known)["/status/allocatable"] == {"cpu": "9"}
