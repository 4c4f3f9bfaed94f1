"""Claims and volumes: who is bound to what, where what is made can be had, and what becomes of it."""

from typing import Any

import pytest

from cluster_gateway.domain.assignments import Assignments
from cluster_gateway.domain.writing import Parts, Write, store
from kube import Event, Key, Manifest, Object

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass.storage.k8s.io"


def put(town: Any, key: Key, body: Manifest, **metadata: Any) -> None:
    store(town.cluster, Write((key,), Parts(metadata, body, {})), "user")
    town.react()


def claim(town: Any, name: str = "data", size: str = "1Gi", mode: str = "ReadWriteOnce", **spec: Any) -> Object:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, **spec}
    put(town, Key(CLAIM, "default", name), {"spec": spec})
    return read(town, CLAIM, name)


def disk(town: Any, name: str, size: str = "1Gi", mode: str = "ReadWriteOnce", **spec: Any) -> None:
    spec = {"capacity": {"storage": size}, "accessModes": [mode], "persistentVolumeReclaimPolicy": "Retain", **spec}
    put(town, Key(VOLUME, "", name), {"spec": spec})


def storage_class(town: Any, name: str, maker: str = "x", mode: str = "Immediate", **body: Any) -> None:
    metadata = body.pop("metadata", {})
    put(town, Key(CLASS, "", name), {"provisioner": maker, "volumeBindingMode": mode, **body}, **metadata)


def read(town: Any, kind: str, name: str) -> Any:
    return town.cluster.store.get(Key(kind, "default" if kind == CLAIM else "", name))


def pod_with(town: Any, name: str, claim_name: str, node: str) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    spec = {"containers": [{"name": "c"}], "volumes": volumes, "nodeName": node}
    town.cluster.create(Key("Pod", "default", name), {}, {"spec": spec}, {"phase": "Pending"})
    town.react()


def agent_node(town: Any, name: str) -> None:
    town.node(name, {"kubernetes.io/hostname": name})
    found = read(town, "Node", name)
    town.cluster.set_status(found, {"nodeInfo": {"containerRuntimeVersion": "process://1"}})
    town.react()


@pytest.mark.parametrize("named", [{}, {"storageClassName": "from-another-cluster"}])
def test_a_plain_claim_gets_a_folder_at_once(slow_town: Any, named: dict[str, str]) -> None:
    found = claim(slow_town, **named)
    assert (found.status["phase"], found.status["capacity"]) == ("Bound", {"storage": "1Gi"})
    volume = read(slow_town, VOLUME, found.spec["volumeName"])
    assert (volume.status["phase"], volume.spec["claimRef"]["uid"]) == ("Bound", found.uid)


def test_a_claim_that_wants_no_volume_made_waits_for_one(slow_town: Any) -> None:
    assert claim(slow_town, storageClassName="").status["phase"] == "Pending"
    disk(slow_town, "d")
    assert read(slow_town, CLAIM, "data").spec["volumeName"] == "d"


def test_a_claim_gets_the_smallest_volume_that_suffices_and_no_two_get_one(slow_town: Any) -> None:
    for name, size in (("large", "9Gi"), ("small", "1Gi"), ("right", "3Gi")):
        disk(slow_town, name, size, storageClassName="hand")
    disk(slow_town, "shared", "3Gi", mode="ReadWriteMany", storageClassName="hand")
    claim(slow_town, "a", "2Gi", storageClassName="hand")
    claim(slow_town, "b", "2Gi", storageClassName="hand")
    claim(slow_town, "c", "2Gi", storageClassName="hand")
    named = [read(slow_town, CLAIM, name) for name in "abc"]
    assert [item.spec.get("volumeName") for item in named] == ["right", "large", None]
    assert named[2].status["phase"] == "Pending"
    assert read(slow_town, VOLUME, "small").status["phase"] == "Available"


def test_a_claim_without_a_class_is_of_the_default_class(slow_town: Any) -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    storage_class(slow_town, "usual", mode="WaitForFirstConsumer", metadata=default)
    found = claim(slow_town)
    assert (found.spec["storageClassName"], found.status["phase"]) == ("usual", "Pending")


def test_a_late_claim_is_made_on_the_node_that_was_chosen(slow_town: Any) -> None:
    slow_town.node("n1", {"kubernetes.io/hostname": "n1", "zone": "a"})
    storage_class(slow_town, "late", mode="WaitForFirstConsumer")
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    storage_class(slow_town, "zonal", mode="WaitForFirstConsumer", allowedTopologies=topologies)
    seen = {}
    for name in ("late", "zonal"):
        found = claim(slow_town, name, storageClassName=name)
        assert found.status["phase"] == "Pending"
        annotations = {"volume.kubernetes.io/selected-node": "n1"}
        slow_town.cluster.replace(found, {**found.metadata, "annotations": annotations}, found.body)
        slow_town.react()
        found = read(slow_town, CLAIM, name)
        assert found.status["phase"] == "Bound"
        affinity = read(slow_town, VOLUME, found.spec["volumeName"]).spec["nodeAffinity"]["required"]
        seen[name] = affinity["nodeSelectorTerms"][0]["matchExpressions"][0]
    assert (seen["late"]["key"], seen["late"]["values"]) == ("kubernetes.io/hostname", ["n1"])
    assert (seen["zonal"]["key"], seen["zonal"]["values"]) == ("zone", ["a"])


def test_a_claim_in_use_is_kept_until_its_last_pod_has_ended(slow_town: Any) -> None:
    slow_town.node("n")
    volume = claim(slow_town).spec["volumeName"]
    pod_with(slow_town, "p", "data", "n")
    slow_town.cluster.delete(read(slow_town, CLAIM, "data"))
    slow_town.react()
    assert read(slow_town, CLAIM, "data").deleting
    slow_town.finish("p")
    assert read(slow_town, CLAIM, "data") is None
    assert read(slow_town, VOLUME, volume) is None


def test_a_volume_that_somebody_made_is_kept_when_its_claim_goes_and_given_to_nobody(slow_town: Any) -> None:
    disk(slow_town, "d", storageClassName="hand")
    claim(slow_town, storageClassName="hand")
    slow_town.cluster.delete(read(slow_town, CLAIM, "data"))
    slow_town.react()
    assert read(slow_town, VOLUME, "d").status["phase"] == "Released"
    assert claim(slow_town, "next", storageClassName="hand").status["phase"] == "Pending"


def test_a_claim_whose_volume_is_gone_is_lost(slow_town: Any) -> None:
    disk(slow_town, "d", storageClassName="hand")
    claim(slow_town, storageClassName="hand")
    slow_town.cluster.delete(read(slow_town, VOLUME, "d"))
    slow_town.react()
    assert read(slow_town, CLAIM, "data").status["phase"] == "Lost"


def test_a_folder_stays_on_the_machine_of_its_first_pod(slow_town: Any) -> None:
    agent_node(slow_town, "n1")
    agent_node(slow_town, "n2")
    volume = claim(slow_town).spec["volumeName"]
    assert "nodeAffinity" not in read(slow_town, VOLUME, volume).spec
    pod_with(slow_town, "p", "data", "n2")
    terms = read(slow_town, VOLUME, volume).spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["n2"]


def test_a_claim_applied_again_keeps_its_volume(slow_town: Any) -> None:
    first = claim(slow_town).spec["volumeName"]
    again = claim(slow_town)
    assert (again.spec["volumeName"], again.status["phase"]) == (first, "Bound")


def test_an_agent_is_told_the_path_of_a_volume_that_names_one(slow_town: Any) -> None:
    agent_node(slow_town, "n1")
    disk(slow_town, "d", storageClassName="hand", hostPath={"path": "/srv/data"})
    claim(slow_town, storageClassName="hand")
    claim(slow_town, "folder")
    pod_with(slow_town, "p", "data", "n1")
    pod_with(slow_town, "q", "folder", "n1")
    assignments = Assignments(slow_town.cluster.store)
    assignments.fold([Event(None, item) for item in slow_town.cluster.store.objects.values()])
    told = {pod["metadata"]["name"]: pod["spec"]["volumes"][0] for pod in assignments.of("n1").pods}
    assert told["p"] == {"name": "v", "hostPath": {"path": "/srv/data"}}
    assert told["q"]["persistentVolumeClaim"] == {"claimName": "folder"}


@pytest.mark.parametrize("spec", ["x", 5, {"volumeName": [1]}, {"resources": "x"}, {"selector": "x"}])
def test_a_claim_of_no_sense_does_not_stop_the_others(town: Any, spec: Any) -> None:
    """Admission lets none in; whoever has one in an older log can go on."""
    put(town, Key(CLAIM, "default", "bad"), {"spec": spec})
    claim(town, volumeName="disk")
    disk(town, "disk")
    assert read(town, CLAIM, "data").status["phase"] == "Bound"


def test_a_pod_with_a_grace_time_beyond_all_dates_can_be_deleted(town: Any) -> None:
    """Admission lets none in; one in an older log could never be deleted."""
    town.node("n")
    spec = {"containers": [{"name": "c"}], "nodeName": "n", "terminationGracePeriodSeconds": 10**15}
    pod = town.cluster.create(Key("Pod", "default", "p"), {}, {"spec": spec}, {"phase": "Running"})
    town.cluster.delete(pod)
    assert town.cluster.store.get(pod.key).metadata["deletionGracePeriodSeconds"] == (1 << 31) - 1
