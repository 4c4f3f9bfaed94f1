"""A service changes only those fields of an object that it decides."""

from typing import Any

import pytest

from cluster_gateway.domain.ownership import field_refusal
from kube import Decision, Key, Manifest, Mutation, Verb

POD, GROUP, JOB = "Pod", "PodGroup.scheduling.volcano.sh", "Job.batch.volcano.sh"


def condition(kind: str) -> Manifest:
    return {"conditions": [{"type": kind, "status": "False"}]}


def annotation(name: str) -> Manifest:
    return {"metadata": {"annotations": {name: "x"}}}


ADMISSION = "tidegate.dev/admission"

MAY: list[tuple[str, Verb, str, Manifest]] = [
    ("gang_scheduler", Verb.STATUS, POD, condition("PodScheduled")),
    ("gang_scheduler", Verb.STATUS, GROUP, {"phase": "Running", "running": 3, **condition("Unschedulable")}),
    ("queue_manager", Verb.STATUS, GROUP, {"phase": "Inqueue", **condition("Admitted")}),
    ("queue_manager", Verb.PATCH, POD, annotation(ADMISSION)),
    ("queue_manager", Verb.STATUS, "Queue.scheduling.volcano.sh", {"state": "Closed", "allocated": {}}),
    ("descheduler", Verb.PATCH, POD, annotation("scheduling.koordinator.sh/soft-eviction")),
    ("inference_autoscaler", Verb.PATCH, "Deployment.apps", {"spec": {"replicas": 3}}),
    ("job_controller", Verb.PATCH, POD, {"metadata": {"labels": {"a": "b"}}, "spec": {"activeDeadlineSeconds": 1}}),
    ("job_controller", Verb.PATCH, GROUP, {"spec": {"minMember": 2}}),
    ("job_controller", Verb.STATUS, JOB, {"state": {"phase": "Running"}}),
]
MAY_NOT: list[tuple[str, Verb, str, Manifest, str]] = [
    ("gang_scheduler", Verb.STATUS, POD, {"phase": "Running"}, "phase.Running"),
    ("gang_scheduler", Verb.STATUS, POD, condition("Ready"), "conditions.Ready"),
    ("gang_scheduler", Verb.STATUS, GROUP, {"phase": "Pending"}, "phase.Pending"),
    ("gang_scheduler", Verb.STATUS, GROUP, condition("Admitted"), "conditions.Admitted"),
    ("queue_manager", Verb.STATUS, GROUP, {"phase": "Running"}, "phase.Running"),
    ("queue_manager", Verb.STATUS, GROUP, {"running": 1}, "running"),
    ("queue_manager", Verb.STATUS, POD, condition("PodScheduled"), "conditions.PodScheduled"),
    ("queue_manager", Verb.PATCH, POD, {"spec": {"nodeName": "n"}}, "spec.nodeName"),
    ("queue_manager", Verb.PATCH, GROUP, {"spec": {"minMember": 1}}, "spec.minMember"),
    ("queue_manager", Verb.PATCH, POD, {"metadata": {"labels": {"a": "b"}}}, "metadata.labels.a"),
    ("queue_manager", Verb.PATCH, POD, {"spec": None}, "spec"),
    ("descheduler", Verb.PATCH, POD, {"spec": {"nodeName": "n"}}, "spec.nodeName"),
    ("inference_autoscaler", Verb.PATCH, "Deployment.apps", {"spec": {"paused": True}}, "spec.paused"),
    ("job_controller", Verb.PATCH, POD, {"spec": {"nodeName": "n"}}, "spec.nodeName"),
    ("job_controller", Verb.PATCH, POD, annotation(ADMISSION), f"metadata.annotations.{ADMISSION}"),
]


@pytest.mark.parametrize(("service", "verb", "kind", "patch"), MAY)
def test_what_a_service_decides_it_may_change(service: str, verb: Verb, kind: str, patch: Manifest) -> None:
    assert field_refusal(service, verb, kind, patch) == ""


@pytest.mark.parametrize(("service", "verb", "kind", "patch", "path"), MAY_NOT)
def test_what_another_decides_it_may_not(service: str, verb: Verb, kind: str, patch: Manifest, path: str) -> None:
    assert field_refusal(service, verb, kind, patch) == f"{service} does not decide {path} of {kind}"


def test_a_decision_that_oversteps_is_refused_whole_with_the_field(rig: Any) -> None:
    rig.write({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {}})
    key = Key("Pod", "default", "p")
    mutations = (
        Mutation(Verb.PATCH, key, patch=annotation(ADMISSION)),
        Mutation(Verb.STATUS, key, patch={"phase": "Failed"}),
    )
    (outcome,) = rig.decide("queue_manager", Decision("Overstepped", key, mutations=mutations))
    assert not outcome.applied and "queue_manager does not decide phase.Failed of Pod" in outcome.reasons[str(key)]
    assert rig.pod("p").annotations == {} and rig.pod("p").status["phase"] == "Pending"


@pytest.mark.parametrize("kind", [POD, GROUP, "Job.batch", "Deployment.apps"])
def test_the_status_of_what_it_makes_is_not_the_job_controllers(rig: Any, kind: str) -> None:
    key = Key(kind, "default", "x")
    rig.enact(lambda cluster: cluster.create(key, {}, {"spec": {}}, {}))
    mutation = Mutation(Verb.STATUS, key, patch={"phase": "Succeeded"})
    (outcome,) = rig.decide("job_controller", Decision("Overstepped", key, mutations=(mutation,)))
    assert not outcome.applied
