"""Pods of one template are admitted once: the same comes out as if each were admitted by itself."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.applier import Change
from admission.domain.admit import admit
from admission.domain.errors import Rejected
from admission.domain.overlay import Overlay
from admission.domain.templates import Templates
from admission.manifests import ManifestReader
from kube import Key, Manifest, Store, from_manifest

PROFILE_KIND = "ClusterColocationProfile.config.koordinator.sh"


def pod(name: str, priority_class: str = "", cpu: str = "1") -> Manifest:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **({"priorityClassName": priority_class} if priority_class else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str, value: int, *, everywhere: bool = False) -> Manifest:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        "globalDefault": everywhere,
    }


def profile(name: str) -> Manifest:
    spec = {"selector": {"matchLabels": {}}, "labels": {"by": name}}
    return {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": name},
        "spec": spec,
    }


OBJECTS = [priority_class("low", 1), priority_class("low", 5), priority_class("usual", 7, everywhere=True)]
PODS = st.builds(pod, st.sampled_from(["a", "b", "c", "d", "No"]), st.sampled_from(["", "low"]), st.sampled_from("12"))
STEPS = st.lists(st.lists(st.one_of(PODS, st.sampled_from([*OBJECTS, profile("all")])), max_size=5), max_size=5)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_what_was_admitted_before_is_what_would_be_admitted_now(batches: list[list[Manifest]]) -> None:
    store, changed, reader = Store(), dict[str, int](), ManifestReader()
    templates = Templates(lambda kind: changed.get(kind, 0))
    for revision, batch in enumerate(batches, 1):
        world, kinds = Overlay(store), set[str]()
        for manifest in batch:
            read = reader.read(orjson.dumps(manifest))
            key = from_manifest(manifest).key
            if key.kind != "Pod":
                key = Key(key.kind, "", key.name)
                world.put(from_manifest(manifest))
                kinds.add(key.kind)
                continue
            assert taken(templates, key, read, manifest, world, revision - 1) == alone(manifest, world)
        for kind in kinds:
            for item in world.of_kind(kind).values():
                store.put(item)
            changed[kind] = revision


def taken(templates: Templates, key: Key, read: Any, manifest: Manifest, world: Overlay, revision: int) -> Any:
    try:
        found = templates.like(read.manifest, read.name, world) if read.name else None
        item, warnings = found or templates.admitted(key, manifest, world, revision, origin=read.manifest)
    except Rejected as rejected:
        return str(rejected)
    return item.key, item.metadata, item.body, item.status, warnings


def alone(manifest: Manifest, world: Overlay) -> Any:
    try:
        admitted = admit(manifest, None, world)
    except Rejected as rejected:
        return str(rejected)
    item = from_manifest(admitted.manifest)
    return item.key, item.metadata, item.body, item.status, admitted.warnings


@pytest.mark.parametrize("together", [True, False])
def test_a_pod_like_an_earlier_one_gets_the_priority_that_holds_now(desk: Any, together: bool) -> None:
    """Whether it comes in the same request or in a later one."""
    reader = ManifestReader()
    manifests = [pod("a"), priority_class("usual", 7, everywhere=True), pod("b"), pod("c")]
    changes = [Change(*reader.read(orjson.dumps(one))) for one in manifests]
    for part in [changes] if together else [[one] for one in changes]:
        desk.do(desk.applier.apply("ann", part))
    assert [desk.get("Pod", name).spec.get("priority") for name in "abc"] == [None, 7, 7]


def test_pods_alike_of_several_requests_share_their_parts(desk: Any) -> None:
    reader = ManifestReader()
    for name in "abc":
        desk.do(desk.applier.apply("ann", [Change(*reader.read(orjson.dumps(pod(name))))]))
    sent = [request.blobs for request in desk.bus.asked]
    assert len(sent) == 3 and len({tuple(blobs) for blobs in sent}) == 1


def test_a_node_of_processes_is_noticed_when_it_comes_and_when_it_goes(desk: Any) -> None:
    """Which nodes there are is remembered from pod to pod, as long as it is so."""

    def node(name: str, **annotations: str) -> Manifest:
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}

    def warned(name: str, label: str = "") -> bool:
        manifest = pod(name)
        manifest["metadata"] |= {"labels": {"a": label}} if label else {}
        (result,) = desk.apply(manifest)
        return any("runs processes" in warning for warning in result.warnings)

    desk.apply(node("n1"))
    assert not warned("a")
    desk.apply(node("n2", **{"tidegate.dev/isolation": "none"}))
    assert warned("b") and warned("c", "other")
    desk.delete(Key("Node", "", "n2"))
    assert not warned("d") and not warned("e", "another")
    together = desk.apply(node("n3", **{"tidegate.dev/isolation": "none"}), pod("f"))
    assert any("runs processes" in warning for warning in together[1].warnings)
