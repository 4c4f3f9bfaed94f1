"""Pods and groups in a LocalQueue: placed with their quota, on its nodes, and evicted when it is taken back."""

import json
from typing import Any

from kube import Key, Verb

LABEL = "kueue.x-k8s.io/queue-name"
ADMISSION = "tidegate.dev/admission"
REVOKED = "tidegate.dev/revoked"
GROUP = "PodGroup.scheduling.volcano.sh"


def admission(**more: Any) -> str:
    return json.dumps({"clusterQueue": "cq", "flavors": {"cpu": "f"}, "usage": {"cpu": 1}, **more})


def annotate(toy: Any, key: Key, **annotations: str) -> None:
    item = toy.store.objects[key]
    merged = {**item.annotations, **annotations}
    toy.fold([toy.store.put(item.changed(metadata={**item.metadata, "annotations": merged}))])


def prepare(toy: Any) -> None:
    toy.queues = {"default": {}, "cohort/cq": {}}
    toy.node("a", cpu=8, labels={"pool": "a"})
    toy.node("b", cpu=8, labels={"pool": "b"}, spec={"taints": [{"key": "t", "effect": "NoSchedule"}]})


def test_a_pod_in_a_local_queue_waits_for_quota_and_goes_to_the_nodes_of_its_flavor(toy: Any) -> None:
    prepare(toy)
    toy.pods("p", cpu=1, labels={LABEL: "lq"})
    toy.settle()
    assert toy.where("p") == ""
    told = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota", "message": "2 more needed"}
    pod = toy.pod("p")
    toy.fold([toy.store.put(pod.changed(status={**pod.status, "conditions": [told]}))])
    answer = toy.explain("Pod", "p")
    assert (answer["verdict"], answer["rule"], answer["message"]) == ("NotLetIn", "WaitingForQuota", "2 more needed")
    granted = admission(nodeSelector={"pool": "b"}, tolerations=[{"key": "t", "operator": "Exists"}])
    annotate(toy, Key("Pod", "default", "p"), **{ADMISSION: granted})
    toy.settle()
    assert toy.where("p") == "b"
    assert toy.explain("Pod", "p")["queue"] == "cohort/cq"


def test_the_members_of_a_group_go_where_the_quota_of_the_group_is(toy: Any) -> None:
    prepare(toy)
    toy.group("g", 2, phase="Pending")
    item = toy.store.objects[Key(GROUP, "default", "g")]
    toy.fold([toy.store.put(item.changed(metadata={**item.metadata, "labels": {LABEL: "lq"}}))])
    toy.pods("p", 2, group="g", cpu=1)
    toy.settle()
    assert toy.bound() == []
    annotate(toy, Key(GROUP, "default", "g"), **{ADMISSION: admission(nodeSelector={"pool": "a"})})
    item = toy.store.objects[Key(GROUP, "default", "g")]
    toy.fold([toy.store.put(item.changed(status={"phase": "Inqueue"}))])
    toy.settle()
    assert [toy.where("p-0"), toy.where("p-1")] == ["a", "a"]


def test_a_spoilt_admission_binds_to_no_nodes(toy: Any) -> None:
    prepare(toy)
    toy.queues["cohort/"] = {}
    toy.pods("p", cpu=1, labels={LABEL: "lq"}, annotations={ADMISSION: "{"})
    toy.settle()
    assert toy.where("p") == "a"


def test_a_pod_whose_quota_was_taken_back_is_evicted_once(toy: Any) -> None:
    prepare(toy)
    toy.pods("p", cpu=1, labels={LABEL: "lq"}, annotations={ADMISSION: admission()})
    toy.settle()
    text = json.dumps({"reason": "InClusterQueue", "message": "high wants it back"})
    annotate(toy, Key("Pod", "default", "p"), **{REVOKED: text})
    [decision] = toy.core.decide(toy.now, frozenset())
    assert (decision.name, decision.reason, decision.message) == (
        "WorkloadEvicted",
        "InClusterQueue",
        "high wants it back",
    )
    assert [(item.verb, item.key.name) for item in decision.mutations] == [(Verb.EVICT, "p")]
    toy.core.assume("d", decision)
    assert toy.core.decide(toy.now, frozenset({decision.subject})) == []


def test_a_group_whose_quota_was_taken_back_is_evicted_whole_and_starts_nobody(toy: Any) -> None:
    prepare(toy)
    toy.group("g", 2)
    toy.pods("p", 3, group="g", cpu=1)
    toy.settle()
    assert len(toy.bound()) == 3
    toy.pods("late", group="g", cpu=1)
    annotate(toy, Key(GROUP, "default", "g"), **{REVOKED: "{}"})
    [decision] = toy.core.decide(toy.now, frozenset())
    assert sorted(item.key.name for item in decision.mutations) == ["p-0", "p-1", "p-2"]
    assert decision.reason == "Preempted"
    assert toy.where("late") == ""


def test_members_beyond_the_quota_of_their_group_wait_until_it_grows(toy: Any) -> None:
    prepare(toy)
    toy.group("g", 1, annotations={ADMISSION: admission(usage={"cpu": 2000})})
    toy.pods("p", 3, group="g", cpu=1)
    toy.settle()
    assert toy.bound() == ["p-0", "p-1"]
    assert toy.message("p-2").startswith("g has quota for cpu 2, uses 2 and needs 1 more")
    annotate(toy, Key(GROUP, "default", "g"), **{ADMISSION: admission(usage={"cpu": 3000})})
    toy.settle()
    assert toy.bound() == ["p-0", "p-1", "p-2"]
