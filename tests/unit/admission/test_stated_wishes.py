"""Wishes in annotations: a minimum that is no number is refused, peers' wishes that are none are told."""

from typing import Any

import pytest

from admission.domain.admit import admit
from admission.domain.pod_review import check_shaped_pod
from admission.domain.world import Review
from kube import Manifest, Store, key_of

GANG, KOORDINATOR = "gang.scheduling.koordinator.sh", "scheduling.koordinator.sh"


def pod(**annotations: str) -> Manifest:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "p", "namespace": "default", "annotations": dict(annotations)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("name", [f"{GANG}/min-available", "pod-group.scheduling.sigs.k8s.io/min-available"])
@pytest.mark.parametrize("text", ["two", "-1", "", "1.5", "²"])
def test_the_minimum_of_a_gang_is_a_number(gate: Any, name: str, text: str) -> None:
    """A gang that nobody knows the size of could start with one pod, or never."""
    manifest = pod(**{name: text})
    assert list(gate.wrong(manifest)) == [f'metadata.annotations["{name}"]']
    told = [error.path for error in check_shaped_pod(Review(key_of(manifest), manifest, None, Store()))]
    assert told == [f'metadata.annotations["{name}"]']
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}, "annotations": {name: text}}, "spec": manifest["spec"]},
        },
    }
    assert f'spec.template.metadata.annotations["{name}"]' in gate.wrong(deployment)


def test_a_placement_is_one_that_there_is(gate: Any) -> None:
    assert list(gate.wrong(pod(**{"tidegate.dev/placement": "tight"}))) == [
        'metadata.annotations["tidegate.dev/placement"]'
    ]
    assert not gate.wrong(pod(**{"tidegate.dev/placement": "spread", f"{GANG}/min-available": "0"}))


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        (f"{GANG}/groups", "default/a", '["default/a"]'),
        (f"{GANG}/groups", "[5]", "[]"),
        (f"{GANG}/mode", "Sloppy", "NonStrict"),
        (f"{GANG}/match-policy", "never", "only-waiting"),
        (f"{GANG}/total-number", "x", "3"),
        ("volcano.sh/network-topology-mode", "maybe", "soft"),
        ("volcano.sh/network-topology-highest-tier", "-1", "2"),
        ("volcano.sh/numa-topology-policy", "one", "single-numa-node"),
        ("volcano.sh/preemptable", "maybe", "false"),
        (f"{KOORDINATOR}/numa-topology-spec", "[" * 100_000, "{}"),
        (f"{KOORDINATOR}/numa-topology-spec", '{"numaTopologyPolicy": "One"}', '{"numaTopologyPolicy": "BestEffort"}'),
        (f"{KOORDINATOR}/resource-spec", '{"preferredCPUBindPolicy": []}', '{"preferredCPUBindPolicy": "FullPCPUs"}'),
        (f"{KOORDINATOR}/device-joint-allocate", '{"requiredScope": "SameMoon"}', '{"requiredScope": "SamePCIe"}'),
        (f"{KOORDINATOR}/gpu-partition-spec", "5", '{"allocatePolicy": "Restricted"}'),
    ],
)
def test_a_wish_that_is_none_is_told_with_its_rule(name: str, wrong: str, right: str) -> None:
    (told,) = admit(pod(**{name: wrong}), None, Store()).warnings
    assert told.startswith(f'metadata.annotations["{name}"]: ')
    assert told.endswith("; it has no effect")
    assert admit(pod(**{name: right}), None, Store()).warnings == ()
