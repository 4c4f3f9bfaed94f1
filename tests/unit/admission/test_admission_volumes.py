"""Claims, volumes, classes and reservations: what is filled in, and what cannot work."""

from typing import Any

import pytest

POD = {"spec": {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}}
OWNERS = [{"labelSelector": {"matchLabels": {"app": "a"}}}]
API = {
    "Reservation": "scheduling.koordinator.sh/v1alpha1",
    "StorageClass": "storage.k8s.io/v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
}
SIZE = {"resources": {"requests": {"storage": "1Gi"}}}


def thing(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    body = spec if kind == "StorageClass" else {"spec": spec}
    return {"apiVersion": API[kind], "kind": kind, "metadata": {"name": "x"}, **body}


def test_a_reservation_is_for_a_day_and_for_one_owner(gate: Any) -> None:
    spec = gate.apply(thing("Reservation", {"template": POD, "owners": OWNERS}))["spec"]
    assert (spec["ttl"], spec["allocateOnce"], spec["allocatePolicy"]) == ("24h", True, "Aligned")
    assert spec["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    assert gate.warnings == ()


def test_a_reservation_that_says_when_it_ends_has_no_span(gate: Any) -> None:
    spec = {"template": POD, "owners": OWNERS, "expires": "2026-01-01T00:00:00Z"}
    assert "ttl" not in gate.apply(thing("Reservation", spec))["spec"]


def test_a_reservation_may_be_for_room_that_others_use(gate: Any) -> None:
    policy = {"mode": "Cluster", "enableMultiple": True}
    spec = {"template": POD, "owners": OWNERS, "preAllocation": True, "preAllocationPolicy": policy}
    assert gate.apply(thing("Reservation", spec))["spec"]["preAllocationPolicy"] == policy
    assert gate.warnings == ()


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Reservation", {"owners": OWNERS}, "spec.template.spec.containers"),
        ("Reservation", {"template": POD}, "spec.owners"),
        (
            "Reservation",
            {"template": POD, "owners": OWNERS, "preAllocationPolicy": {"mode": "All"}},
            "spec.preAllocationPolicy.mode",
        ),
        ("Reservation", {"template": POD, "owners": [{}]}, "spec.owners[0]"),
        ("Reservation", {"template": POD, "owners": OWNERS, "ttl": "soon"}, "spec.ttl"),
        ("Reservation", {"template": POD, "owners": OWNERS, "expires": "soon"}, "spec.expires"),
        ("Reservation", {"template": POD, "owners": OWNERS, "allocatePolicy": "Loose"}, "spec.allocatePolicy"),
        ("Reservation", {"template": POD, "owners": OWNERS, "taints": [{"key": "k", "effect": "No"}]}, "spec.taints[0].effect"),
        (
            "Reservation",
            {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}}, "owners": OWNERS},
            "spec.template.spec.containers[0].resources.requests.cpu",
        ),
        ("PersistentVolume", {"accessModes": ["ReadWriteOnce"]}, "spec.capacity.storage"),
        ("PersistentVolume", {"capacity": {"storage": "1Gi"}}, "spec.accessModes"),
        (
            "PersistentVolume",
            {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Burn"},
            "spec.persistentVolumeReclaimPolicy",
        ),
        ("PersistentVolumeClaim", {"accessModes": ["ReadWriteOncePod", "ReadWriteMany"], **SIZE}, "spec.accessModes"),
        ("StorageClass", {}, "provisioner"),
        ("StorageClass", {"provisioner": "x", "volumeBindingMode": "Later"}, "volumeBindingMode"),
        ("StorageClass", {"provisioner": "x", "reclaimPolicy": "Burn"}, "reclaimPolicy"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_by_field(gate: Any, kind: str, spec: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(thing(kind, spec))


def test_a_class_stays_as_it_is(gate: Any) -> None:
    stored = gate.apply(thing("StorageClass", {"provisioner": "x"}))
    assert (stored["volumeBindingMode"], stored["reclaimPolicy"]) == ("Immediate", "Delete")
    assert "provisioner" in gate.wrong(thing("StorageClass", {"provisioner": "y"}))


def test_a_claim_stays_of_its_class(gate: Any) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], **SIZE}
    gate.apply(thing("PersistentVolumeClaim", {**spec, "storageClassName": "a"}))
    assert "spec.storageClassName" in gate.wrong(thing("PersistentVolumeClaim", {**spec, "storageClassName": "b"}))
    assert not gate.wrong(thing("PersistentVolumeClaim", spec))


def test_a_volume_made_by_hand_is_kept(gate: Any) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    assert gate.apply(thing("PersistentVolume", spec))["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
