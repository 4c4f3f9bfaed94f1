"""Reading scenario files: what is read, and how a file that is written wrong is told of."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from testing.scenarios import ScenarioError, load_scenario, parse_scenario, scenario_files
from testing.scenarios.scenario import Advance, Apply, Expect

STEP = {"expect": {"evictedCount": 0}}


def document(*steps: Any, **top: Any) -> dict[str, Any]:
    return {"scenario": "s", "area": "gang", "title": "t", "origin": "o", "steps": list(steps) or [STEP], **top}


def test_a_file_becomes_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(document({"advance": "1m30s"}, STEP, why="because", policy={"reclaim": False})))
    scenario = load_scenario(path)
    assert (scenario.area, scenario.name, scenario.why, scenario.policy) == ("gang", "s", "because", {"reclaim": False})
    assert scenario.steps[0] == Advance(90_000)
    assert isinstance(scenario.steps[1], Expect)


def test_a_time_is_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "{scenario: s, area: gang, title: t, origin: o, steps: [{expect: {object: "
        "[{ref: Pod/p, path: metadata.creationTimestamp, equals: 2026-01-01T00:00:00Z}]}}]}"
    )
    [step] = load_scenario(path).steps
    assert isinstance(step, Expect)
    assert "equals='2026-01-01T00:00:00Z'" in repr(step.matchers[0])


def test_a_refusal_alone_is_an_expectation() -> None:
    [step] = parse_scenario(document({"apply": [{"kind": "Queue", "metadata": {"name": "q"}}], "rejects": "no"})).steps
    assert isinstance(step, Apply)
    assert step.rejects == "no"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([{"wait": "1s"}], "step 1: keys wait; exactly one of nodes"),
        ([STEP, {"advance": "1s", "node": {}}], "step 2: keys advance, node"),
        ([{"advance": "soon"}], "step 1: advance: 'soon' is not a duration"),
        ([{"expect": {"pod": {}}}], "step 1: unknown key 'pod'"),
        ([{"expect": {"pods": {"p": {"nodes": "n"}}}}], "step 1: pods.p: unknown key 'nodes'"),
        ([{"expect": {"count": [{"podGroup": "g"}]}}], r"step 1: count\[0\]: it counts nothing"),
        ([{"expect": {"count": [{"bound": 1}]}}], r"count\[0\]: it selects no pods"),
        ([{"expect": {"count": [{"all": True, "bound": "1"}]}}], r"count\[0\]: bound: '1' is no whole number"),
        ([{"expect": {"object": [{"ref": "pod/p", "equals": 1}]}}], r"object\[0\]: ref: 'pod/p' is no reference"),
        ([{"expect": {"object": [{"ref": "Pod/p", "path": "a..b", "equals": 1}]}}], r"object\[0\]: path: 'a..b'"),
        ([{"expect": {"object": [{"ref": "Pod/p", "path": "a"}]}}], r"object\[0\]: it wants nothing"),
        ([{"expect": {"object": [{"ref": "Pod/p", "path": "a", "min": "x"}]}}], r"object\[0\]: min: 'x'"),
        ([{"expect": {"env": [{"name": "A", "equals": "1"}]}}], r"env\[0\]: it names either a pod or a select"),
        ([{"expect": {}}], "step 1: it expects nothing"),
        ([{"nodes": [{"name": "n", "allocatable": {"cpu": 1}, "zone": "z"}]}, STEP], r"nodes\[0\]: unknown key 'zone'"),
        ([{"nodes": [{"name": "n"}]}, STEP], r"nodes\[0\]: allocatable is missing"),
        ([{"nodes": [{"name": "n", "allocatable": {"cpu": "many"}}]}, STEP], r"nodes\[0\]: allocatable: cpu: 'many'"),
        ([{"apply": [{"kind": "Pod", "metadata": {"name": "p"}, "cpu": 1}]}, STEP], r"apply\[0\]: unknown key 'cpu'"),
        ([{"delete": ["Pod"]}, STEP], r"delete\[0\]: 'Pod' is no reference"),
        ([{"podPhase": {"p": "Done"}}, STEP], "podPhase.p: phase: 'Done' is none of"),
        ([{"podReady": {"p": "yes"}}, STEP], "podReady.p: 'yes' is neither true nor false"),
        ([{"node": {"n": {"cordoned": True}}}, STEP], "node.n: unknown key 'cordoned'"),
        ([{"restart": ["gateway"]}, STEP], r"restart\[0\]: 'gateway' is none of"),
        ([{"usage": {"n": {"gpu": 1}}}, STEP], "usage.n: unknown key 'gpu'"),
        ([{"advance": "1s", "rejects": "x"}, STEP], "step 1: rejects goes with apply or delete only"),
        ([{"advance": "1s"}], "it expects nothing"),
    ],
)
def test_a_step_that_is_written_wrong_is_told_with_its_place(steps: list[Any], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        parse_scenario(document(*steps))


@pytest.mark.parametrize(
    ("top", "told"),
    [
        ({"area": "harbour"}, "area: 'harbour' is none of"),
        ({"policy": {"speed": 1}}, "policy: unknown key 'speed'"),
        ({"simulate": {"podStart": "soon"}}, "simulate: podStart: 'soon' is not a duration"),
        ({"simulate": {"start": "1s"}}, "simulate: unknown key 'start'"),
        ({"note": "x"}, "unknown key 'note'"),
        ({"title": ""}, "title: '' is no text"),
    ],
)
def test_a_top_key_that_is_written_wrong_is_told(top: dict[str, Any], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        parse_scenario(document(**top))


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(document()))
    with pytest.raises(ScenarioError, match=rf"{path}: scenario: 's' is not the name of the file"):
        load_scenario(path)
    path.write_text("a: [")
    with pytest.raises(ScenarioError, match=rf"{path}: it cannot be read"):
        load_scenario(path)


def test_folders_are_searched_and_nothing_is_taken_twice(tmp_path: Path) -> None:
    (tmp_path / "gang").mkdir()
    for name in ("gang/b.yaml", "gang/a.yaml", "gang/note.md"):
        (tmp_path / name).write_text("")
    found = scenario_files([tmp_path / "gang" / "b.yaml", tmp_path])
    assert [path.name for path in found] == ["b.yaml", "a.yaml"]
    with pytest.raises(ScenarioError, match="no such file or folder"):
        scenario_files([tmp_path / "gone"])
