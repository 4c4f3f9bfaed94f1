"""What becomes of decisions that an API server refuses, that others write beside, or whose answers are lost."""

import asyncio
import itertools
import urllib.error
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_sides import FOLLOWED, KubernetesSide
from control_plane import ControlPlane
from fault_proxy import FaultProxy, fault_proxy

from cluster_gateway.kubernetes import sender
from kube import Decision, Manifest, Mutation, Verb

MERGE = "application/merge-patch+json"
GROUP = "PodGroup.scheduling.volcano.sh"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces"
_numbers = itertools.count(1_000)


@pytest.fixture
def proxy(plane: ControlPlane, tmp_path: Path) -> Iterator[FaultProxy]:
    with fault_proxy(plane, tmp_path) as made:
        yield made


@pytest.fixture
async def side(plane: ControlPlane, proxy: FaultProxy) -> AsyncIterator[KubernetesSide]:
    kinds = FOLLOWED | {"Deployment.apps", "PodDisruptionBudget.policy", "ResourceQuota"}
    made = KubernetesSide(next(_numbers), plane, proxy.address, kinds)
    await made.start()
    yield made
    await made.close()


def pod(name: str, **spec: Any) -> Manifest:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"schedulerName": "nobody", "containers": [container], **spec},
    }


def path(side: KubernetesSide, *rest: str) -> str:
    return "/".join((f"/api/v1/namespaces/{side.namespace}", *rest))


async def make_pods(side: KubernetesSide, *names: str) -> list[Any]:
    for name in names:
        await asyncio.to_thread(side.ask, "POST", path(side, "pods"), pod(name))
    return await side.until(
        lambda: [side.get("Pod", name) for name in names] if set(side.names("Pod")) >= set(names) else None
    )


def placed(side: KubernetesSide, pods: list[Any], node: str) -> Decision:
    mutations = tuple(Mutation(Verb.BIND, item.key, item.uid, node=node) for item in pods)
    return Decision("GangPlaced", pods[0].key, pods[0].uid, "MinimumPlaced", "all of it is placed", mutations)


def condition(kind: str) -> Manifest:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R", "message": ""}


def events(side: KubernetesSide) -> list[tuple[str, str]]:
    found = side.ask("GET", path(side, "events"))["items"]
    return [(item["reason"], item["message"]) for item in found]


# --- a gang half-way --------------------------------------------------------------------------------------------------


async def test_a_gang_whose_binding_fails_halfway_is_told_as_it_is_within_a_second(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    proxy.add("POST .*/pods/b[0-9]/binding", code=403, message="pods/b is not for you")
    loop, taken = asyncio.get_running_loop(), []
    # What else this machine does may hold up one gang; what the gateway itself waits for would hold up each.
    for turn in range(3):
        names = [f"{letter}{turn}" for letter in "abc"]
        pods = await make_pods(side, *names)
        began = loop.time()

        (outcome,) = await side.decide("gang_scheduler", placed(side, pods, "n001"))

        taken.append(loop.time() - began)
        assert outcome.reasons == {str(pods[1].key): "pods/b is not for you"}
        assert [side.get("Pod", name).spec.get("nodeName") for name in names] == ["n001", None, "n001"]
    assert min(taken) < 1.0
    told = await side.until(lambda: [text for reason, text in events(side) if reason == "CarryingOutFailed"])
    assert "1 part of 3 could not be done" in told[0] and "pods/b is not for you" in told[0]


async def test_a_member_that_was_deleted_on_the_way_is_gone_in_the_facts_with_the_outcome(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    pods = await make_pods(side, "a", "b")
    binding = proxy.add("POST .*/pods/b/binding", seconds=2.0)
    watch = proxy.add("watch=1", seconds=5.0)
    proxy.cut_watches()

    ids = await side.commit("gang_scheduler", placed(side, pods, "n001"))
    await side.until(lambda: binding.met)
    side.ask("DELETE", path(side, "pods", "b"))
    (outcome,) = await side.outcomes(ids)

    assert outcome.reasons == {str(pods[1].key): "is gone"}
    assert side.names("Pod") == ["a"]
    assert watch.met > 0


async def test_bindings_whose_answers_are_lost_or_that_are_put_off_are_made_once(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    pods = await make_pods(side, *(f"p{n}" for n in range(8)))
    proxy.add("POST .*/pods/p[0-2]/binding", times=3, is_lost=True)
    proxy.add("POST .*/pods/p3/binding", times=2, code=429, retry_after=1)
    proxy.add("POST .*/pods/p4/binding", times=2, code=503)
    proxy.add("POST .*/pods/p5/binding", times=2, is_reset=True)

    (outcome,) = await side.decide("gang_scheduler", placed(side, pods, "n002"))

    assert (outcome.applied, outcome.reasons) == (True, {})
    stored = side.ask("GET", path(side, "pods"))["items"]
    assert {item["spec"]["nodeName"] for item in stored} == {"n002"}


async def test_a_server_that_goes_on_failing_is_believed_after_a_while(
    side: KubernetesSide, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook that does not answer makes it say so for ever."""
    monkeypatch.setattr(sender, "PATIENCE_SECONDS", 0.5)
    pods = await make_pods(side, "a")
    proxy.add("POST .*/binding", code=500, message="failed calling webhook")

    (outcome,) = await side.decide("gang_scheduler", placed(side, pods, "n001"))

    assert outcome.reasons == {str(pods[0].key): "failed calling webhook"}


# --- what the server forbids ------------------------------------------------------------------------------------------


async def test_an_eviction_that_a_budget_forbids_is_refused_and_never_forced(side: KubernetesSide) -> None:
    pods = await make_pods(side, "a", "b")
    await side.decide("gang_scheduler", placed(side, pods, "n003"))
    budget = {"metadata": {"name": "both"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "a"}}}}
    side.ask("POST", f"/apis/policy/v1/namespaces/{side.namespace}/poddisruptionbudgets", budget)
    budgets = f"/apis/policy/v1/namespaces/{side.namespace}/poddisruptionbudgets/both"
    await side.until(lambda: side.ask("GET", budgets).get("status", {}).get("currentHealthy") == 2)
    evict = Decision("GangPreempted", pods[0].key, pods[0].uid, "R", "m", (Mutation(Verb.EVICT, pods[0].key),))

    (refused,) = await side.decide("gang_scheduler", evict)

    assert "disruption budget" in refused.reasons[str(pods[0].key)]
    assert not side.get("Pod", "a").deleting
    side.ask("DELETE", budgets)
    await side.until(lambda: side.store.get(side.key("PodDisruptionBudget.policy", "both")) is None)
    (done,) = await side.decide("gang_scheduler", evict)
    assert done.applied


async def test_pods_that_a_quota_forbids_are_refused_with_its_numbers(side: KubernetesSide) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}}
    side.ask("POST", path(side, "resourcequotas"), quota)
    await side.until(lambda: side.ask("GET", path(side, "resourcequotas", "small")).get("status", {}).get("hard"))
    mutations = tuple(
        Mutation(Verb.CREATE, side.key("Pod", name), manifest={**pod(name), "metadata": {"name": name}})
        for name in ("a", "b", "c")
    )

    (outcome,) = await side.decide("job_controller", Decision("PodsMade", mutations[0].key, mutations=mutations))

    assert len(outcome.reasons) == 2 and all("exceeded quota: small" in text for text in outcome.reasons.values())
    assert len(side.names("Pod")) == 1


# --- writing beside others --------------------------------------------------------------------------------------------


def set_condition(side: KubernetesSide, kind: str) -> None:
    """As another controller would that knows of no other conditions than those that are there."""
    place = f"{GROUPS}/{side.namespace}/podgroups/g"
    while True:
        there = side.ask("GET", place)
        status = there.get("status") or {}
        status["conditions"] = [*(status.get("conditions") or ()), condition(kind)]
        try:
            side.ask("PUT", f"{place}/status", {**there, "status": status})
            return
        except urllib.error.HTTPError as error:
            assert error.code == 409


async def test_conditions_that_another_controller_writes_at_the_same_time_stay(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    group = {**kind, "metadata": {"name": "g"}, "spec": {"minMember": 1}}
    await asyncio.to_thread(side.ask, "POST", f"{GROUPS}/{side.namespace}/podgroups", group)
    await side.until(lambda: side.names(GROUP))
    proxy.add("watch=1", seconds=1.0)
    proxy.cut_watches()
    key = side.key(GROUP, "g")

    for turn in range(4):
        await asyncio.to_thread(set_condition, side, f"Theirs{turn}")
        mutation = Mutation(Verb.STATUS, key, patch={"conditions": [condition("Scheduled")], "running": turn})
        (outcome,) = await side.decide("gang_scheduler", Decision("GangObserved", key, mutations=(mutation,)))
        assert outcome.applied

    status = side.ask("GET", f"{GROUPS}/{side.namespace}/podgroups/g")["status"]
    assert {one["type"] for one in status["conditions"]} == {"Scheduled", *(f"Theirs{turn}" for turn in range(4))}
    assert status["running"] == 3


async def test_a_change_that_was_made_without_knowing_of_anothers_is_refused(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    await make_pods(side, "a")
    proxy.add("watch=1", seconds=1.0)
    proxy.cut_watches()
    side.ask("PATCH", path(side, "pods", "a"), {"metadata": {"labels": {"theirs": "yes"}}}, MERGE)
    key = side.key("Pod", "a")
    change = Mutation(Verb.PATCH, key, patch={"metadata": {"annotations": {"ours": "yes"}}})

    (late,) = await side.decide("job_controller", Decision("Changed", key, mutations=(change,)))
    (again,) = await side.decide("job_controller", Decision("Changed", key, mutations=(change,)))

    assert late.reasons == {str(key): "was changed by somebody meanwhile"}
    assert again.applied
    stored = side.ask("GET", path(side, "pods", "a"))["metadata"]
    assert (stored["labels"]["theirs"], stored["annotations"]["ours"]) == ("yes", "yes")


async def test_a_change_of_the_status_beside_a_patch_does_not_matter(side: KubernetesSide, proxy: FaultProxy) -> None:
    await make_pods(side, "a")
    proxy.add("watch=1", seconds=1.0)
    proxy.cut_watches()
    side.ask("PATCH", path(side, "pods", "a", "status"), {"status": {"message": "theirs"}}, MERGE)
    key = side.key("Pod", "a")
    change = Mutation(Verb.PATCH, key, patch={"metadata": {"annotations": {"ours": "yes"}}})

    (outcome,) = await side.decide("job_controller", Decision("Changed", key, mutations=(change,)))

    assert outcome.applied


async def test_how_many_replicas_there_are_goes_by_the_subresource_that_is_for_it(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": pod("d")["spec"]}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template},
    }
    side.ask("POST", f"/apis/apps/v1/namespaces/{side.namespace}/deployments", deployment)
    found = await side.until(
        lambda: item if (item := side.find("Deployment.apps", "d")) and item.status.get("observedGeneration") else None
    )
    scaled = proxy.add("PATCH .*/deployments/d/scale", times=1)
    mutation = Mutation(Verb.PATCH, found.key, found.uid, patch={"spec": {"replicas": 3}})

    (outcome,) = await side.decide("job_controller", Decision("ReplicasScaled", found.key, mutations=(mutation,)))

    assert outcome.applied and scaled.met == 1
    assert side.get("Deployment.apps", "d").spec["replicas"] == 3


async def test_every_service_is_the_manager_of_the_fields_that_it_decides(side: KubernetesSide) -> None:
    await make_pods(side, "a")
    key = side.key("Pod", "a")
    label = Mutation(Verb.PATCH, key, patch={"metadata": {"labels": {"x": "y"}}})
    told = Mutation(Verb.STATUS, key, patch={"nominatedNodeName": "n001"})
    await side.decide("job_controller", Decision("Changed", key, mutations=(label,)))
    await side.decide("gang_scheduler", Decision("Nominated", key, mutations=(told,)))

    managers = {one["manager"] for one in side.ask("GET", path(side, "pods", "a"))["metadata"]["managedFields"]}

    assert managers >= {"tidegate-job-controller", "tidegate-gang-scheduler"}


# --- two gateways -----------------------------------------------------------------------------------------------------


async def test_a_gateway_that_may_not_be_the_only_one_sends_nothing(
    side: KubernetesSide, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = await make_pods(side, "a")
    lease = side.gateway._lease
    monkeypatch.setattr(type(lease), "is_held", lambda _: False)
    bound = proxy.add("POST .*/binding")

    ids = await side.commit("gang_scheduler", placed(side, pods, "n001"))
    await asyncio.sleep(0.5)
    assert bound.met == 0

    monkeypatch.undo()
    (outcome,) = await side.outcomes(ids)
    assert outcome.applied and bound.met == 1


async def test_a_decision_that_ended_before_an_older_one_has_one_outcome_whoever_goes_on(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    pods = await make_pods(side, "slow", "quick")
    proxy.add("POST .*/pods/slow/binding", code=503)
    slow = await side.commit("gang_scheduler", placed(side, pods[:1], "n001"))
    (quick,) = await side.decide("gang_scheduler", placed(side, pods[1:], "n001"))
    assert quick.applied

    await side.kill()
    proxy.faults.clear()
    await side.start()

    (late,) = await side.outcomes(slow)
    assert late.applied
    await side.decide("gang_scheduler", Decision("Noted", pods[0].key))
