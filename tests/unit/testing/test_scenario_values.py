"""Comparing by value, ranges, references and paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.scenarios import ScenarioError
from testing.scenarios.refs import follow, parse_path, parse_pod_name, parse_ref
from testing.scenarios.values import Range, any_of, holds, parse_range, same


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        (1, "1000m"),
        ("2Gi", 2147483648),
        (118000, "118k"),
        ("0.5", "500m"),
        ("text", "text"),
        (None, None),
        ({"cpu": 5, "memory": "1Ki"}, {"cpu": "5", "memory": 1024}),
        ([1, "a"], ["1000m", "a"]),
    ],
)
def test_values_are_the_same_when_they_mean_the_same(wanted: object, got: object) -> None:
    assert same(wanted, got)


@pytest.mark.parametrize(
    ("wanted", "got"),
    [(1, 2), (True, "true"), (1, True), ("a", "b"), ({"a": 1}, {"a": 1, "b": 2}), ([1], [1, 1]), (0, None), ("", None)],
)
def test_values_differ_when_they_mean_different_things(wanted: object, got: object) -> None:
    assert not same(wanted, got)


@given(st.integers(0, 10**9))
def test_a_quantity_is_the_same_in_every_unit(number: int) -> None:
    assert same(number, f"{number * 1000}m")
    assert same(f"{number}Ki", number * 1024)


def test_a_list_that_is_wanted_gives_alternatives() -> None:
    assert any_of(["Pending", "Inqueue"], "Inqueue")
    assert any_of([1, 2], [1, 2])
    assert any_of(["n1", None], None)
    assert not any_of(["Pending", "Inqueue"], "Running")


def test_what_is_held_is_part_of_a_text_a_list_or_a_mapping() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "False", "reason": "x"}]
    assert holds("slots=4", "a slots=4")
    assert holds({"type": "Failed", "status": "False"}, conditions)
    assert not holds({"type": "Ready", "status": "False"}, conditions)
    assert holds(2, ["1", "2"])
    assert holds({"cpu": 1}, {"cpu": "1000m", "memory": "1Gi"})
    assert not holds("x", None)


@pytest.mark.parametrize(
    ("value", "inside", "outside"),
    [(3, [3], [2, 4]), ({"min": 2}, [2, 9], [1]), ({"min": 1, "max": 2}, [1, 2], [0, 3])],
)
def test_a_range_holds_its_bounds(value: object, inside: list[int], outside: list[int]) -> None:
    found = parse_range(value)
    assert all(number in found for number in inside)
    assert not any(number in found for number in outside)


def test_a_range_says_what_it_wants() -> None:
    assert str(Range(3, 3)) == "3"
    assert str(Range(1, 4)) == "at least 1 and at most 4"
    assert str(Range(None, 4)) == "at most 4"


@pytest.mark.parametrize("value", [None, "3", True, {}, {"least": 1}, {"min": "1"}])
def test_what_is_neither_number_nor_range_is_an_error(value: object) -> None:
    with pytest.raises(ScenarioError):
        parse_range(value)


def test_a_reference_means_the_preferred_kind_of_its_name() -> None:
    assert [key.kind for key in parse_ref("Job/a").candidates()] == ["Job.batch.volcano.sh", "Job.batch"]
    assert parse_ref("Job/lab/a").candidates()[0].namespace == "lab"
    assert parse_ref("Queue/q").candidates()[0].namespace == ""
    assert (str(parse_ref("Pod/p")), str(parse_ref("Pod/lab/p"))) == ("Pod/p", "Pod/lab/p")


@pytest.mark.parametrize("text", ["Pod", "pod/a", "Pod/a/b/c", "Sloop/a", None, "Pod/"])
def test_what_is_no_reference_is_an_error(text: object) -> None:
    with pytest.raises(ScenarioError):
        parse_ref(text)


def test_a_pod_is_named_with_or_without_its_namespace() -> None:
    assert parse_pod_name("p") == ("default", "p")
    assert parse_pod_name("lab/p") == ("lab", "p")
    with pytest.raises(ScenarioError):
        parse_pod_name("a/b/c")


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("metadata.name", ("metadata", "name")),
        ("a[0].b", ("a", 0, "b")),
        ('status.allocatable["kubernetes.io/batch-cpu"]', ("status", "allocatable", "kubernetes.io/batch-cpu")),
        ('data["w.host"]', ("data", "w.host")),
        ('status.tasks["outer/inner"].state', ("status", "tasks", "outer/inner", "state")),
    ],
)
def test_a_path_is_read_step_by_step(path: str, steps: tuple[object, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize("path", ["", ".a", "a..b", "a[x]", "a[0", None, "a]"])
def test_what_is_no_path_is_an_error(path: object) -> None:
    with pytest.raises(ScenarioError):
        parse_path(path)


def test_a_path_that_leads_nowhere_finds_nothing() -> None:
    thing = {"a": [{"b": 0}]}
    assert follow(thing, ("a", 0, "b")) == 0
    assert follow(thing, ("a", 1, "b")) is None
    assert follow(thing, ("a", "b")) is None
    assert follow(thing, ("c", 0)) is None
