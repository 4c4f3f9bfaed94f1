"""Manifests from text: what is read, and how what cannot be read is told."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import Manifest
from tidegate_cli import document_size
from tidegate_cli.apply_order import in_order
from tidegate_cli.documents import Document, Unreadable, parse_documents, read_documents

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(Unreadable) as caught:
        parse_documents("f.yaml", text)
    return caught.value.problems


def test_documents_are_numbered_and_placed_and_empty_ones_are_skipped() -> None:
    found = parse_documents("f.yaml", f"# a remark\n---\n---\n{HEAD}---\n{HEAD}")
    assert [(one.number, one.line) for one in found] == [(2, 4), (3, 8)]
    assert found[0].place == "f.yaml, document 2, line 4"


def test_a_list_is_taken_apart() -> None:
    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in "ab"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert [one.manifest["metadata"]["name"] for one in parse_documents("f.json", text)] == ["a", "b"]


def test_json_documents_may_stand_behind_each_other_and_use_tabs() -> None:
    text = '{\n\t"apiVersion": "v1",\n\t"kind": "Pod"\n}\n{"apiVersion": "v1", "kind": "Node"}'
    found = parse_documents("f.json", text)
    assert [(one.manifest["kind"], one.number, one.line) for one in found] == [("Pod", 1, 1), ("Node", 2, 5)]
    assert parse_documents("f.yaml", "{apiVersion: v1, kind: Pod}")[0].manifest["kind"] == "Pod"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1\nb: 2\n", "f.yaml:2:2: did not find expected"),
        ("a: 1\na: 2\n", "f.yaml:2:1: key 'a' is given twice"),
        ("? [a]\n: 1\n", "f.yaml:1:3: a key has to be a text"),
        ("a: *b\n", "f.yaml:1:4: found undefined alias"),
        ("- 1\n", "document 1, line 1: a manifest is a mapping with apiVersion, kind and metadata, not a list"),
        ("text\n", "not a text"),
        ("kind: Pod\n", "apiVersion missing; each manifest says what it is"),
        ("apiVersion: v1\nkind: 5\n", "kind missing"),
        (HEAD.replace("{name: m}", "[m]"), "metadata is to be a mapping, not a list"),
        (HEAD + "data: {a: 99999999999999999999}\n", "a value that JSON cannot hold"),
        ('{"kind": "Pod", "apiVersion" "v1"}', "f.yaml:1:30: Expecting ':' delimiter"),
        ("a: !!python/object:os.system x\n", "could not determine a constructor"),
        ("a: \x01\n", "f.yaml"),
        ("[" * 3000, "f.yaml"),
        ('{"a":' * 100_000, "f.yaml"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, problem: str) -> None:
    (told,) = problems(text)
    assert problem in told
    assert told.startswith("f.yaml")


def laughs(levels: int, item: str = "[{0},{0},{0},{0},{0},{0},{0},{0},{0}]") -> str:
    """Each level names the one before several times."""
    lines = ["a0: &a0 {k: lol}", *(f"a{n}: &a{n} {item.format(f'*a{n - 1}')}" for n in range(1, levels))]
    return HEAD + "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            laughs(20),
            "document 1: has over 1,048,576 MiB with its aliases written out; a document may have at most 64 MiB",
        ),
        (laughs(30, "{{<<: [{0}, {0}]}}"), "with its aliases written out"),
        (HEAD + "a: &a [*a]", "document 1: has an alias that stands for itself"),
        (laughs(7), "bytes; an object may have at most 3,145,728"),
        (HEAD + "a: " + "x" * (4 << 20), "bytes; an object may have at most 3,145,728"),
        ("a: [" + "1," * 600_000 + "1]", "a document has more than 100,000 values"),
    ],
)
def test_what_is_too_large_is_told_with_the_limit_before_it_is_built(
    text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_size, "MOST_DOCUMENT_VALUES", 100_000)  # two millions take long to count
    tracemalloc.start()
    (told,) = problems(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem in told and len(told) < 200
    assert most < 100 << 20


def test_a_list_may_be_larger_than_an_object() -> None:
    items = ",".join(f"{{apiVersion: v1, kind: ConfigMap, data: {{a: {'x' * 1_000_000}}}}}" for _ in range(4))
    assert len(parse_documents("f.yaml", f"apiVersion: v1\nkind: List\nitems: [{items}]")) == 4


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.yaml").open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(Unreadable, match="larger than 64 MiB"):
        read_documents([str(tmp_path / "a.yaml")])


def test_all_that_is_wrong_in_all_files_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "b.yaml").write_text("kind: Pod\n---\n- 1\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Unreadable) as caught:
        read_documents([str(tmp_path / name) for name in ("a.yaml", "b.yaml", "empty", "none.yaml")])
    told = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 5
    for part in ("not UTF-8 text, at byte 0", "apiVersion missing", "not a list", "no .yaml", "No such file"):
        assert part in told


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("0x1F", 31),
        ("-7", -7),
        ("0o17", 15),
        ("0644", 0o644),
        ("089", "089"),
        ("1_000", "1_000"),
        ("1.50", 1.5),
        ("1e3", "1e3"),
        ("100m", "100m"),
        ("~", None),
        ("'5'", "5"),
    ],
)
def test_scalars_are_what_kubernetes_takes_them_for(text: str, value: Any) -> None:
    (found,) = parse_documents("f.yaml", f"{HEAD}data: {{v: {text}}}\n")
    assert found.manifest["data"]["v"] == value
    assert type(found.manifest["data"]["v"]) is type(value)


def test_merged_mappings_give_way_to_what_stands_beside_them() -> None:
    (found,) = parse_documents("f.yaml", f"{HEAD}base: &base {{a: 1, b: 2}}\ndata:\n  <<: *base\n  b: 3\n")
    assert found.manifest["data"] == {"a": 1, "b": 3}


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(data=VALUES)
def test_what_is_written_as_json_or_quoted_yaml_is_read_as_it_was(data: Any) -> None:
    manifest: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    for text in (json.dumps(manifest), yaml.safe_dump(manifest, default_style='"') if _plain(data) else "{}"):
        if text != "{}":
            assert parse_documents("f", text)[0].manifest == manifest


def _plain(data: Any) -> bool:
    """Whether YAML's quoted style writes it so that it is the same text again: without numbers and the like."""
    if isinstance(data, dict):
        return all(map(_plain, data.values()))
    return all(map(_plain, data)) if isinstance(data, list) else isinstance(data, str)


def document(kind: str, name: str, api: str = "v1", **parts: Any) -> Document:
    return Document({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **parts}, "f", 1, 1)


def test_what_others_name_goes_before_them_and_the_rest_stays_in_order() -> None:
    job = document("Job", "z-first", "batch.volcano.sh/v1alpha1")
    child = document("Queue", "child", "scheduling.volcano.sh/v1beta1", spec={"parent": "parent"})
    parent = document("Queue", "parent", "scheduling.volcano.sh/v1beta1", spec={"parent": "root"})
    pod, namespace = document("Pod", "a"), document("Namespace", "team")
    assert in_order([job, child, pod, parent, namespace]) == [namespace, parent, child, job, pod]


def test_queues_that_are_each_others_parents_do_not_hold_the_command_up() -> None:
    one = document("Queue", "one", "scheduling.volcano.sh/v1beta1", spec={"parent": "two"})
    two = document("Queue", "two", "scheduling.volcano.sh/v1beta1", spec={"parent": "one"})
    assert in_order([one, two]) == [one, two]
