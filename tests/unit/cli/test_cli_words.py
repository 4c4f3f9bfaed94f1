"""What words on the command line mean."""

import click
import pytest

from kube import Manifest
from tidegate_cli.documents import Document
from tidegate_cli.goals import BadGoal, parse_goal
from tidegate_cli.object_words import ALL, kind_named, named_objects, one_object, wanted_objects
from tidegate_cli.sorting import BadPath, field_path, sorted_by
from tidegate_cli.spans import SECONDS


def meant(*words: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.kind.id, one.names) for one in wanted_objects(words)]


def test_a_kind_goes_by_any_of_its_names() -> None:
    assert meant("pods") == meant("pod") == meant("po") == meant("Pod") == [("Pod", ())]
    assert meant("jobs") == meant("vcjob") == [("Job.batch.volcano.sh", ())]
    assert meant("jobs.batch") == [("Job.batch", ())]


def test_names_stand_behind_a_kind_or_behind_a_slash() -> None:
    assert meant("pod", "a", "b", "a") == [("Pod", ("a", "b"))]
    assert meant("pod/a", "q/research") == [("Pod", ("a",)), ("Queue.scheduling.volcano.sh", ("research",))]
    assert meant("pods,queues", "a") == [("Pod", ("a",)), ("Queue.scheduling.volcano.sh", ("a",))]


def test_all_is_what_runs_and_each_kind_is_meant_once() -> None:
    assert [kind for kind, _ in meant("all")] == list(ALL)
    assert meant("pods,po,all")[0] == ("Pod", ())
    assert len(meant("pods,all")) == len(ALL)


@pytest.mark.parametrize("words", [(), ("pdos",), (",",), ("pod/a", "b"), ("pod/",), ("/a",), ("a/b/c",)])
def test_words_that_mean_nothing_are_wrong_usage(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        wanted_objects(words)


def test_a_kind_without_a_name_is_no_object() -> None:
    assert [name for _, name in named_objects(["pod", "a", "b"])] == ["a", "b"]
    with pytest.raises(click.UsageError, match="which pods"):
        named_objects(["pods"])
    with pytest.raises(click.UsageError, match="one object, not 2"):
        one_object(["pod", "a", "b"])


def test_a_slip_of_the_pen_is_answered_with_what_may_have_been_meant() -> None:
    with pytest.raises(click.UsageError, match="did you mean queue"):
        kind_named("queeue")


def test_keys_of_kinds_without_namespaces_have_none() -> None:
    (pods, queues) = wanted_objects(["pods,queues", "a"])
    assert [key.namespace for key in (*pods.keys("team"), *queues.keys("team"))] == ["team", ""]
    assert (pods.place("team"), queues.place("team")) == ("team", "")


POD: Manifest = {
    "metadata": {"name": "p"},
    "status": {"phase": "Running", "ready": 3, "conditions": [{"type": "Ready", "status": "True"}]},
}
JOB: Manifest = {"status": {"state": {"phase": "Completed"}}}
TRAIN: Manifest = {
    "status": {"conditions": [{"type": "Created", "status": "True"}, {"type": "Failed", "status": "False"}]}
}


@pytest.mark.parametrize(
    ("goal", "manifest", "met"),
    [
        ("condition=Ready", POD, True),
        ("condition=ready", POD, True),
        ("condition=Ready=False", POD, False),
        ("condition=Other", POD, False),
        ("phase=running", POD, True),
        ("phase=Completed", JOB, True),
        ("phase=Created", TRAIN, True),
        ("phase=Failed", TRAIN, False),
        ("jsonpath={.status.ready}=3", POD, True),
        ("jsonpath='{.status.ready}'=4", POD, False),
        ("jsonpath={.status.none}", POD, False),
        ("jsonpath={.status.ready}", POD, True),
        ("create", POD, True),
        ("create", None, False),
        ("delete", POD, False),
        ("delete", None, True),
        ("condition=Ready", None, False),
    ],
)
def test_a_goal_is_met_by_the_state_that_it_names(goal: str, manifest: Manifest | None, met: bool) -> None:
    assert parse_goal(goal).is_met(manifest) is met


@pytest.mark.parametrize("word", ["", "soon", "condition", "condition=", "phase=A=B", "jsonpath=[]", "delete=now"])
def test_a_word_that_is_no_goal_is_told(word: str) -> None:
    with pytest.raises(BadGoal):
        parse_goal(word)


def test_sorting_is_by_size_and_then_by_text_with_the_empty_ones_first() -> None:
    cells = ["10", None, "9", "1Gi", "b", "a"]
    manifests: list[Manifest] = [{"v": cell} for cell in cells]
    assert [one["v"] for one in sorted_by(manifests, "v")] == [None, "9", "10", "1Gi", "a", "b"]


def test_paths_may_stand_in_braces() -> None:
    assert field_path("{.status.conditions[0].type}") == field_path(".status.conditions[0].type")
    assert field_path("metadata.name") == "metadata.name"
    for wrong in ("", "{}", "[]", "a b", ".a..b", "{.items[*].name}"):
        with pytest.raises(BadPath):
            field_path(wrong)


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("0.5", 0.5), ("1m30s", 90), ("500ms", 0.5)])
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert SECONDS.convert(text, None, None) == seconds
    with pytest.raises(click.BadParameter):
        SECONDS.convert("soon", None, None)


def test_a_document_knows_its_place() -> None:
    assert Document({}, "f.yaml", 2, 14).place == "f.yaml, document 2, line 14"
