"""How a binding tells a pod's node which devices the pod has."""

import json

import pytest

from kube.devices import annotations_of, chosen_devices, devices_of

CARDS = "tidegate.dev/devices"
PLACE = "scheduling.koordinator.sh/resource-status"
GIVEN = {"nvidia.com/gpu": [0, 2], "cpuset": "4-7", "numaNodeResources": [{"node": 1, "resources": {"cpu": "4"}}]}


def test_cards_and_places_are_told_in_annotations_of_their_own() -> None:
    told = annotations_of(GIVEN)
    assert told[CARDS] == '{"nvidia.com/gpu":[0,2]}'
    assert told[PLACE] == '{"cpuset":"4-7","numaNodeResources":[{"node":1,"resources":{"cpu":"4"}}]}'
    assert annotations_of({}) == {}
    assert list(annotations_of({"cpuset": "0"})) == [PLACE]


def test_what_was_told_is_read_again() -> None:
    assert devices_of(annotations_of(GIVEN)) == GIVEN


def test_the_cards_that_koordinator_gave_are_known_unless_the_pod_says_otherwise() -> None:
    theirs = {"scheduling.koordinator.sh/device-allocated": '{"gpu": [{"minor": 3, "resources": {}}, {"minor": 1}]}'}
    assert devices_of(theirs) == {"koordinator.sh/gpu": [3, 1]}
    assert devices_of({**theirs, CARDS: '{"nvidia.com/gpu": [0]}'}) == {"nvidia.com/gpu": [0]}


@pytest.mark.parametrize("text", ["", "no json", "[1]", '{"gpu": 3}', '{"gpu": [{"name": 1}]}', '{"gpu": [7]}'])
def test_what_cannot_be_read_is_left_out(text: str) -> None:
    assert devices_of({"scheduling.koordinator.sh/device-allocated": text, PLACE: "no json"}) == {}
    assert chosen_devices({"metadata": {"annotations": {CARDS: '{"a": "b"}'}}}) == {}


def test_what_was_asked_for_in_koordinators_names_is_told_in_its_annotation_too() -> None:
    told = annotations_of({"koordinator.sh/gpu-core": [1, 3], "koordinator.sh/rdma": [0]})
    given = json.loads(told["scheduling.koordinator.sh/device-allocated"])
    assert given == {"gpu": [{"minor": 1}, {"minor": 3}], "rdma": [{"minor": 0}]}
    assert "scheduling.koordinator.sh/device-allocated" not in annotations_of({"nvidia.com/gpu": [1]})
