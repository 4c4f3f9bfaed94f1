"""Manifests that differ in nothing but their names are parsed once, and mean what they would mean by themselves."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.manifests import BadManifest, ManifestReader, Read

NAMES = st.sampled_from(["a", "b", "a-b", "web.1", "c", "name", "metadata", "\u00e9", 'q"', "a\\b", "", "A"])
TEXTS = st.one_of(NAMES, st.text(max_size=4))


@st.composite
def contents(draw: Any) -> bytes:
    """A manifest, or something like one, in any of the ways in which JSON may be written."""
    metadata: Any = {"name": draw(NAMES), **draw(st.dictionaries(TEXTS, TEXTS, max_size=2))}
    manifest: Any = {"kind": "Pod", draw(NAMES): draw(TEXTS), "metadata": metadata}
    if draw(st.booleans()):
        manifest = {"metadata": draw(st.sampled_from([None, [], "a", {"name": 3}, {}, metadata])), "kind": "Pod"}
    text = json.dumps(manifest, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    if draw(st.booleans()):
        text = text.replace('"a"', '"\\u0061"', 1)
    if draw(st.booleans()):
        text = text.replace('"name": ', '"name": "first", "name": ', 1)
    return text.encode("utf-8", "surrogatepass")


def whole(read: Read) -> Any:
    if not read.name:
        return read.manifest
    return {**read.manifest, "metadata": {**read.manifest["metadata"], "name": read.name}}


@given(st.lists(contents(), min_size=2, max_size=6))
def test_each_is_read_as_if_it_came_alone(sent: list[bytes]) -> None:
    reader = ManifestReader()
    for content in (*sent, *sent):
        try:
            alone = orjson.loads(content)
        except orjson.JSONDecodeError:
            with pytest.raises(BadManifest):
                reader.read(content)
        else:
            assert whole(reader.read(content)) == alone


def pod(name: str, **metadata: Any) -> bytes:
    return orjson.dumps(
        {"kind": "Pod", "metadata": {"name": name, **metadata}, "spec": {"containers": [{"name": "c"}]}}
    )


def test_those_that_are_alike_share_one_manifest() -> None:
    reader = ManifestReader()
    first, *others = [reader.read(pod(f"p-{number}", labels={"a": "b"})) for number in range(3)]
    assert not first.name and [one.name for one in others] == ["p-1", "p-2"]
    assert all(one.manifest is first.manifest for one in others)


def test_a_name_that_stands_elsewhere_too_is_not_taken_for_another() -> None:
    reader = ManifestReader()
    names = [reader.read(pod(name, labels={"app": name})) for name in ("a", "b")]
    assert [one.manifest["metadata"]["labels"]["app"] for one in names] == ["a", "b"]
