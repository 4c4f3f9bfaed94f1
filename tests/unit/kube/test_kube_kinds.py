"""The table of kinds, and the words that people use for them."""

from collections import Counter

import pytest

from kube import KINDS, Key, UnknownKind, api_version_of, find_kind, is_namespaced, key_of, kind_id
from kube.kinds import PREFERRED


@pytest.mark.parametrize("info", KINDS.values(), ids=lambda info: info.id)
def test_every_kind_is_found_by_each_of_its_full_names(info: object) -> None:
    kind = KINDS[info.id]  # type: ignore[attr-defined]
    words = [kind.kind, kind.plural, *kind.short]
    full = [f"{word}.{kind.group}" for word in words] if kind.group else words
    assert all(find_kind(word) == kind for word in full)
    assert kind_id(kind.api_version, kind.kind) == kind.id
    assert api_version_of(kind.id) == kind.api_version


def test_a_short_name_means_one_kind_only() -> None:
    counts = Counter(short for info in KINDS.values() for short in info.short)
    assert [short for short, count in counts.items() if count > 1] == []


def test_a_plural_that_means_several_kinds_is_settled() -> None:
    """Where two groups have a kind of one name, which one a bare word means is written down."""
    counts = Counter(info.plural for info in KINDS.values())
    ambiguous = {plural for plural, count in counts.items() if count > 1}
    assert ambiguous == {KINDS[kind].plural for kind in PREFERRED.values()}
    assert all(find_kind(bare).id == kind for bare, kind in PREFERRED.items())


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("po", "Pod"),
        ("PODS", "Pod"),
        ("job", "Job.batch.volcano.sh"),
        ("vcjob", "Job.batch.volcano.sh"),
        ("jobs.batch", "Job.batch"),
        ("pg", "PodGroup.scheduling.volcano.sh"),
        ("podgroups.scheduling.x-k8s.io", "PodGroup.scheduling.x-k8s.io"),
        ("deploy", "Deployment.apps"),
        ("deployment.apps", "Deployment.apps"),
        ("q", "Queue.scheduling.volcano.sh"),
    ],
)
def test_words_that_people_use(word: str, kind: str) -> None:
    assert find_kind(word).id == kind


@pytest.mark.parametrize("word", ["", "job.", "jobs.nowhere", "foo", "-"])
def test_an_unknown_word_is_an_error(word: str) -> None:
    with pytest.raises(UnknownKind):
        find_kind(word)


def test_cluster_wide_kinds_have_no_namespace() -> None:
    wide = {info.id for info in KINDS.values() if not info.namespaced}
    assert {"Node", "Namespace", "Queue.scheduling.volcano.sh", "PriorityClass.scheduling.k8s.io"} <= wide
    assert not wide & {"Pod", "Secret", "PodGroup.scheduling.volcano.sh", "Job.batch"}
    assert not is_namespaced("Node") and is_namespaced("Something.example.com")


def test_the_key_of_a_manifest() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert key_of(pod) == Key("Pod", "default", "p")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "ignored"}}
    assert key_of(node) == Key("Node", "", "n")
    assert str(key_of(pod)) == "Pod/default/p" and str(key_of(node)) == "Node/n"


@pytest.mark.parametrize(
    "manifest", [{}, {"kind": "Pod"}, {"apiVersion": "v1"}, {"apiVersion": "apps/v1", "kind": "Pod"}]
)
def test_a_manifest_of_no_kind_is_refused(manifest: dict[str, object]) -> None:
    if manifest == {"kind": "Pod"}:
        assert key_of(manifest).kind == "Pod"
        return
    with pytest.raises(UnknownKind):
        key_of(manifest)
