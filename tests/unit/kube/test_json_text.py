"""Texts that anybody may have written, read or refused, and never an end of the reader."""

import pytest

from kube.cpu_lists import parse_cpus
from kube.devices import KOORDINATOR_CARDS, PLACE, devices_of
from kube.json_text import read_json

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", ["", "x", "{", DEEP, "NaN", "-Infinity", '{"a": [Infinity]}', "1e999"])
def test_what_makes_no_sense_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_json_is_read() -> None:
    assert read_json('{"a": [1, 2.5, null, "b"]}') == {"a": [1, 2.5, None, "b"]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (KOORDINATOR_CARDS, DEEP),
        (KOORDINATOR_CARDS, '{"gpu": [{"minor": Infinity}]}'),
        (KOORDINATOR_CARDS, '{"gpu": [{"minor": 1e999}]}'),
        (KOORDINATOR_CARDS, '{"gpu": 5, "rdma": {"minor": 1}}'),
        (PLACE, DEEP),
    ],
)
def test_devices_of_no_sense_are_none(name: str, text: str) -> None:
    assert devices_of({name: text}) == {}


@pytest.mark.parametrize("text", ["0-99999999999", "65536", "a", "-1", "0-0x4"])
def test_a_list_of_cpus_that_no_machine_has_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_cpus(text)
