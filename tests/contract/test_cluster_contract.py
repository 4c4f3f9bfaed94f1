"""What every driver of the cluster gateway does with writes and decisions: local, simulated, and in front of an API server."""

import asyncio
from typing import Any

import pytest

from kube import Decision, Key, Manifest, Mutation, Verb
from tidegate.codec import facts

JOB, GROUP = "Job.batch.volcano.sh", "PodGroup.scheduling.volcano.sh"
READING = "MetricReading.tidegate.dev"


def pod(side: Any, name: str, *, spec: Manifest | None = None, **metadata: Any) -> Manifest:
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": side.namespace, **metadata},
        "spec": {"containers": [container], **(spec or {})},
    }


def job(side: Any, queue: str = "default") -> Manifest:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": side.namespace},
        "spec": {"queue": queue, "minAvailable": 1},
    }


def group(side: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": side.namespace},
        "spec": {"minMember": 1},
    }


def owned(side: Any, name: str, uid: str) -> Mutation:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    return Mutation(Verb.CREATE, side.key("Pod", name), manifest=pod(side, name, ownerReferences=[owner]))


def bind(item: Any, node: str, **parts: Any) -> Mutation:
    return Mutation(Verb.BIND, item.key, item.uid, node=node, **parts)


def decision(side: Any, *mutations: Mutation, uid: str = "") -> Decision:
    return Decision("Something", side.key(JOB, "j"), uid, "Because", "so it is", mutations)


def condition(kind: str) -> Manifest:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R", "message": ""}


# --- binding -------------------------------------------------------------------------------------------------------------


async def test_a_gang_is_bound_whole_with_its_devices_in_the_change_set_of_its_outcome(side: Any) -> None:
    node = await side.node("n")
    await side.write(pod(side, "a"), pod(side, "b"))

    (outcome,) = await side.decide(
        "gang_scheduler", decision(side, *(bind(side.get("Pod", name), node, devices={"gpu": [0]}) for name in "ab"))
    )

    assert (outcome.applied, outcome.reasons) == (True, {})
    (told,) = [at for at, message in enumerate(side.change_sets(), 1) if list(facts.outcomes(message))]
    for name in "ab":
        bound = side.store_at(told).objects[side.key("Pod", name)]
        assert bound.spec["nodeName"] == node
        assert bound.annotations == {"tidegate.dev/devices": '{"gpu":[0]}'}


async def test_a_pod_is_bound_once(side: Any) -> None:
    first_node, second_node = await side.node("n"), await side.node("m")
    await side.write(pod(side, "a"))
    a, on = side.get("Pod", "a"), side.revision

    first, second = await side.decide(
        "gang_scheduler", decision(side, bind(a, first_node)), decision(side, bind(a, second_node)), on=on
    )
    (third,) = await side.decide("gang_scheduler", decision(side, bind(a, second_node)))

    assert first.applied and not second.applied and not third.applied
    assert third.reasons == {str(a.key): f"is bound to {first_node} already"}
    assert side.get("Pod", "a").spec["nodeName"] == first_node


async def test_a_pod_that_was_replaced_is_not_bound_in_the_place_of_the_one_that_was_meant(side: Any) -> None:
    node = await side.node("n")
    await side.write(pod(side, "a"))
    before = side.get("Pod", "a")
    await side.delete(before.key)
    await side.until(lambda: side.find("Pod", "a") is None)
    await side.write(pod(side, "a"))

    (outcome,) = await side.decide("gang_scheduler", decision(side, bind(before, node)))

    assert outcome.reasons == {str(before.key): "is gone"}
    assert "nodeName" not in side.get("Pod", "a").spec


async def test_a_gang_of_which_one_is_known_to_be_gone_is_not_bound_at_all(side: Any) -> None:
    node = await side.node("n")
    await side.write(pod(side, "a"), pod(side, "b"))
    a, b = side.get("Pod", "a"), side.get("Pod", "b")
    await side.delete(b.key)
    await side.until(lambda: side.find("Pod", "b") is None)

    (outcome,) = await side.decide("gang_scheduler", decision(side, bind(a, node), bind(b, node)))

    assert outcome.reasons == {str(b.key): "is gone"}
    assert "nodeName" not in side.get("Pod", "a").spec


async def test_a_binding_to_a_node_that_is_gone_or_has_changed_is_refused(side: Any) -> None:
    gone, changed = await side.node("gone"), await side.node("changed")
    await side.write(pod(side, "a"), pod(side, "b"))
    a, b, on = side.get("Pod", "a"), side.get("Pod", "b"), side.revision
    await side.delete_node(gone)
    await side.label(changed, {"zone": "b"})

    first, second = await side.decide(
        "gang_scheduler", decision(side, bind(a, gone)), decision(side, bind(b, changed)), on=on
    )

    assert first.reasons == {str(a.key): f"node {gone} is gone"}
    assert second.reasons[str(b.key)].startswith(f"node {changed} changed at revision")


async def test_room_that_somebody_else_took_meanwhile_refuses_a_binding_and_our_own_does_not(side: Any) -> None:
    node = await side.node("n")
    await side.write(pod(side, "a"), pod(side, "b"), pod(side, "c"))
    a, b, c, on = side.get("Pod", "a"), side.get("Pod", "b"), side.get("Pod", "c"), side.revision
    (first,) = await side.decide("gang_scheduler", decision(side, bind(a, node)), on=on)
    (second,) = await side.decide("gang_scheduler", decision(side, bind(b, node)), on=on)
    assert first.applied and second.applied

    await side.foreign(pod(side, "other"), node)
    (third,) = await side.decide("gang_scheduler", decision(side, bind(c, node)), on=on)

    assert f"node {node} changed" in third.reasons[str(c.key)]


# --- evicting and deleting ------------------------------------------------------------------------------------------------


async def test_an_evicted_pod_is_leaving_in_the_change_set_of_its_outcome_and_says_why(side: Any) -> None:
    node = await side.node("n")
    await side.write(pod(side, "a", spec={"terminationGracePeriodSeconds": 7}, finalizers=["example.com/held"]))
    await side.decide("gang_scheduler", decision(side, bind(side.get("Pod", "a"), node)))
    a = side.get("Pod", "a")

    (outcome,) = await side.decide("gang_scheduler", decision(side, Mutation(Verb.EVICT, a.key, a.uid)))

    assert outcome.applied
    evicted = side.get("Pod", "a")
    assert evicted.deleting and evicted.metadata["deletionGracePeriodSeconds"] == 7
    (told,) = [one for one in evicted.status["conditions"] if one["type"] == "DisruptionTarget"]
    assert (told["reason"], told["message"]) == ("Because", "so it is")
    (again,) = await side.decide("gang_scheduler", decision(side, Mutation(Verb.EVICT, a.key, "another")))
    assert again.applied


async def test_deleting_what_is_gone_is_done_and_another_of_the_name_is_left_alone(side: Any) -> None:
    await side.write(pod(side, "a"), pod(side, "b"))
    a = side.get("Pod", "a")

    done, gone, other = await side.decide(
        "job_controller",
        decision(side, Mutation(Verb.DELETE, a.key, a.uid)),
        decision(side, Mutation(Verb.DELETE, side.key("Pod", "nowhere"))),
        decision(side, Mutation(Verb.DELETE, side.key("Pod", "b"), "another")),
    )

    assert done.applied and gone.applied and other.applied
    assert side.names("Pod") == ["b"]


# --- creating and changing ------------------------------------------------------------------------------------------------


async def test_a_decision_makes_changes_and_deletes_with_its_outcome(side: Any) -> None:
    await side.write(pod(side, "old"), pod(side, "other"), job(side))
    uid = side.get(JOB, "j").uid

    (outcome,) = await side.decide(
        "job_controller",
        decision(
            side,
            owned(side, "new", uid),
            Mutation(Verb.PATCH, side.key("Pod", "other"), patch={"metadata": {"labels": {"a": "b"}}}),
            Mutation(Verb.STATUS, side.key(JOB, "j"), patch={"state": {"phase": "Running"}}),
            Mutation(Verb.DELETE, side.key("Pod", "old")),
            uid=uid,
        ),
    )

    assert (outcome.applied, outcome.reasons) == (True, {})
    assert side.names("Pod") == ["new", "other"]
    assert side.get("Pod", "other").labels == {"a": "b"}
    assert side.get(JOB, "j").status["state"]["phase"] == "Running"
    made = side.get("Pod", "new")
    assert made.status["phase"] == "Pending" and made.created


async def test_making_what_is_there_already_is_done_when_it_belongs_to_the_same(side: Any) -> None:
    await side.write(job(side))
    uid = side.get(JOB, "j").uid
    await side.decide("job_controller", decision(side, owned(side, "a", uid)))
    before = side.get("Pod", "a")

    same, foreign = await side.decide(
        "job_controller", decision(side, owned(side, "a", uid)), decision(side, owned(side, "a", "another"))
    )

    assert same.applied
    assert foreign.reasons == {str(before.key): "is there already and belongs to somebody else"}
    assert side.get("Pod", "a").uid == before.uid


async def test_a_patch_made_before_somebody_else_changed_the_object_is_refused(side: Any) -> None:
    await side.write(pod(side, "a"))
    on, key = side.revision, side.key("Pod", "a")
    patches = [Mutation(Verb.PATCH, key, patch={"metadata": {"labels": {f"n{n}": str(n)}}}) for n in range(3)]
    first, second = await side.decide("job_controller", decision(side, patches[0]), decision(side, patches[1]), on=on)
    assert first.applied and second.applied
    seen = side.revision
    changed = await side.write(pod(side, "a", labels={"by": "user"}), expected=seen)
    assert not changed.error

    (late,) = await side.decide("job_controller", decision(side, patches[2]), on=seen)
    (again,) = await side.decide("job_controller", decision(side, patches[2]))

    assert late.reasons[str(key)].startswith("was changed by user")
    assert again.applied
    assert side.get("Pod", "a").labels == {"by": "user", "n2": "2"}


async def test_conditions_of_two_services_stand_beside_each_other(side: Any) -> None:
    """Each knew of none of the other's when it decided."""
    await side.write(group(side))
    key, on = side.key(GROUP, "g"), side.revision

    ids = await side.commit(
        "queue_manager",
        decision(side, Mutation(Verb.STATUS, key, patch={"phase": "Inqueue", "conditions": [condition("Admitted")]})),
        on=on,
    )
    ids += await side.commit(
        "gang_scheduler",
        decision(side, Mutation(Verb.STATUS, key, patch={"conditions": [condition("Scheduled")], "running": 1})),
        decision(side, Mutation(Verb.STATUS, key, patch={"conditions": [condition("Unschedulable")]})),
        on=on,
    )

    assert all(outcome.applied for outcome in await side.outcomes(ids))
    status = side.get(GROUP, "g").status
    assert {one["type"] for one in status["conditions"]} == {"Admitted", "Scheduled", "Unschedulable"}
    assert (status["phase"], status["running"]) == ("Inqueue", 1)


async def test_a_field_of_a_status_is_taken_away_by_null(side: Any) -> None:
    await side.write(pod(side, "a"))
    key = side.key("Pod", "a")
    await side.decide("gang_scheduler", decision(side, Mutation(Verb.STATUS, key, patch={"nominatedNodeName": "n1"})))
    assert side.get("Pod", "a").status["nominatedNodeName"] == "n1"

    await side.decide("gang_scheduler", decision(side, Mutation(Verb.STATUS, key, patch={"nominatedNodeName": None})))

    assert "nominatedNodeName" not in side.get("Pod", "a").status


# --- what a decision rests on -----------------------------------------------------------------------------------------------


async def test_a_decision_on_a_subject_that_changed_or_was_replaced_is_refused(side: Any) -> None:
    await side.write(job(side))
    on, uid = side.revision, side.get(JOB, "j").uid
    await side.write(job(side, "other"), expected=on)
    changed = side.get(JOB, "j").spec_revision

    (late,) = await side.decide("job_controller", decision(side, owned(side, "a", uid), uid=uid), on=on)
    (gone,) = await side.decide("job_controller", decision(side, owned(side, "a", uid), uid="another"))
    (good,) = await side.decide("job_controller", decision(side, owned(side, "a", uid), uid=uid))

    assert late.reasons == {str(side.key(JOB, "j")): f"changed at revision {changed}, decided on {on}"}
    assert gone.reasons == {str(side.key(JOB, "j")): "is gone"}
    assert good.applied


async def test_a_change_of_the_subjects_status_alone_does_not_matter(side: Any) -> None:
    await side.write(job(side))
    on, uid = side.revision, side.get(JOB, "j").uid
    await side.decide(
        "job_controller",
        decision(side, Mutation(Verb.STATUS, side.key(JOB, "j"), patch={"state": {"phase": "Running"}})),
    )

    (outcome,) = await side.decide("job_controller", decision(side, owned(side, "a", uid), uid=uid), on=on)

    assert outcome.applied


async def test_a_commit_of_a_term_that_is_over_is_refused(side: Any) -> None:
    await side.write(job(side))
    uid = side.get(JOB, "j").uid
    await side.commit("job_controller", epoch=5, started=True)

    (late,) = await side.decide("job_controller", decision(side, owned(side, "a", uid)), epoch=4)
    (current,) = await side.decide("job_controller", decision(side, owned(side, "a", uid)), epoch=5)

    assert late.reasons == {"": "epoch 4 of job_controller is over"}
    assert current.applied


@pytest.mark.parametrize(
    ("service", "verb", "kind"),
    [
        ("gang_scheduler", Verb.CREATE, "Pod"),
        ("queue_manager", Verb.BIND, "Pod"),
        ("job_controller", Verb.PATCH, "Node"),
    ],
)
async def test_nobody_decides_what_is_anothers(side: Any, service: str, verb: Verb, kind: str) -> None:
    key = Key(kind, "" if kind == "Node" else side.namespace, "x")

    (outcome,) = await side.decide(service, decision(side, Mutation(verb, key, patch={"spec": {}})))

    assert outcome.reasons == {str(key): f"{service} does not decide {verb.name} of {kind}"}


async def test_one_bad_mutation_refuses_its_decision_and_no_other(side: Any) -> None:
    await side.write(job(side))
    uid = side.get(JOB, "j").uid
    gone = Mutation(Verb.PATCH, side.key("Pod", "gone"), patch={"spec": {"a": 1}})

    good, bad, later = await side.decide(
        "job_controller",
        decision(side, owned(side, "a", uid)),
        decision(side, owned(side, "b", uid), gone),
        decision(side, owned(side, "c", uid)),
    )

    assert (good.applied, bad.applied, later.applied) == (True, False, True)
    assert bad.reasons == {str(gone.key): "is gone"}
    assert side.names("Pod") == ["a", "c"]


# --- its life -------------------------------------------------------------------------------------------------------------


async def test_what_was_decided_while_the_gateway_was_away_is_carried_out_once(side: Any) -> None:
    await side.write(job(side))
    uid, before = side.get(JOB, "j").uid, side.revision
    await side.kill()
    ids = await side.commit("job_controller", *(decision(side, owned(side, f"p{n}", uid)) for n in range(5)))

    await side.start()

    assert all(outcome.applied for outcome in await side.outcomes(ids))
    made = {name: side.get("Pod", name).uid for name in side.names("Pod")}
    await side.restart()
    assert sorted(made) == [f"p{n}" for n in range(5)]
    assert {name: side.get("Pod", name).uid for name in side.names("Pod")} == made
    assert side.revision > before


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.05])
async def test_a_gateway_that_dies_midway_leaves_a_gang_that_its_successor_completes(side: Any, pause: float) -> None:
    node = await side.node("n")
    await side.write(*(pod(side, f"p{n}") for n in range(20)))
    pods = [side.get("Pod", f"p{n}") for n in range(20)]
    ids = await side.commit("gang_scheduler", decision(side, *(bind(item, node) for item in pods)))
    await asyncio.sleep(pause)

    await side.restart()

    (outcome,) = await side.outcomes(ids)
    assert (outcome.applied, outcome.reasons) == (True, {})
    assert {side.get("Pod", item.name).spec.get("nodeName") for item in pods} == {node}
    assert {side.get("Pod", item.name).uid for item in pods} == {item.uid for item in pods}


async def test_a_restart_tells_nothing_that_was_told_already(side: Any) -> None:
    await side.node("n")
    await side.write(pod(side, "a"), job(side), group(side))
    before = {key: item.revision for key, item in side.store.objects.items()}

    await side.restart()
    await side.write(pod(side, "late"))

    after = {key: item.revision for key, item in side.store.objects.items()}
    assert after.keys() - before.keys() == {side.key("Pod", "late")}
    assert {key: after[key] for key in before} == before


async def test_who_reads_the_log_knows_what_the_gateway_knows(side: Any) -> None:
    node = await side.node("n")
    await side.write(pod(side, "a"), pod(side, "b"), job(side))
    await side.decide("gang_scheduler", decision(side, bind(side.get("Pod", "a"), node)))
    await side.delete(side.key("Pod", "b"))
    own = side.gateway.mirror.store if hasattr(side.gateway, "mirror") else side.gateway.local.store

    def parts(store: Any) -> Any:
        return {key: (item.uid, item.metadata, item.body, item.status) for key, item in store.objects.items()}

    await side.until(lambda: parts(side.store) == parts(own))


# --- what users write -----------------------------------------------------------------------------------------------------


async def test_a_write_is_a_fact_when_it_is_answered(side: Any) -> None:
    reply = await side.write(pod(side, "a"))

    assert not reply.error
    assert side.get("Pod", "a").revision <= reply.revision <= side.revision


async def test_a_write_over_what_its_writer_has_not_seen_is_refused(side: Any) -> None:
    await side.write(job(side))
    seen = side.revision
    assert not (await side.write(job(side, "second"), expected=seen)).error

    late = await side.write(job(side, "third"), expected=seen)
    new = await side.write(job(side, "fourth"))

    assert late.conflict_revision and new.conflict_revision
    assert side.get(JOB, "j").spec["queue"] == "second"


async def test_a_deletion_means_the_object_that_was_there(side: Any) -> None:
    await side.write(pod(side, "a"))

    await side.delete(side.key("Pod", "a"), uid="another")

    assert side.names("Pod") == ["a"]
    await side.delete(side.key("Pod", "a"), uid=side.get("Pod", "a").uid)
    assert side.names("Pod") == []


async def test_values_of_secrets_are_never_facts(side: Any) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": side.namespace},
        "stringData": {"key": "very-secret-value"},
    }
    await side.write(secret)
    seen = side.revision
    await side.write({**secret, "stringData": {"key": "very-secret-other", "more": "very-secret-more"}}, expected=seen)
    await side.restart()

    log = b"".join(entry.payload for entry in side.bus.log("fact").entries(0))
    assert side.get("Secret", "s").body["data"].keys() == {"key", "more"}
    assert b"very-secret" not in log and b"dmVyeS1zZWNyZXQ" not in log


# --- samples -------------------------------------------------------------------------------------------------------------


def reading(side: Any, value: str) -> Manifest:
    return {
        "apiVersion": "tidegate.dev/v1",
        "kind": "MetricReading",
        "metadata": {"name": "queue", "namespace": side.namespace},
        "spec": {"metric": {"name": "queue"}, "value": value, "timestamp": "2026-01-01T00:00:00Z"},
    }


async def test_a_service_that_measures_writes_samples_over_those_that_are_there(side: Any) -> None:
    """A sample replaces the one before, whatever its writer has seen of it."""
    assert not (await side.measure(reading(side, "3"))).error
    assert not (await side.measure(reading(side, "5"))).error
    assert side.get(READING, "queue").spec["value"] == "5"


async def test_a_service_that_measures_writes_nothing_but_samples(side: Any) -> None:
    """Who may hand samples in may not make pods that way."""
    reply = await side.measure(reading(side, "3"), pod(side, "p"))
    assert "MetricReading" in reply.error and "Pod" in reply.error
    assert side.find("Pod", "p") is None


async def test_credentials_are_answered_to_who_names_an_authentication_that_names_them(side: Any) -> None:
    """A Secret that no authentication names is nobody's to ask for."""
    spec = {"secretTargetRef": [{"parameter": "bearerToken", "name": "named", "key": "token"}]}
    metadata = {"name": "creds", "namespace": side.namespace}
    await side.write(
        {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": metadata, "spec": spec}
    )
    for name in ("named", "other"):
        secret = {"metadata": {"name": name, "namespace": side.namespace}, "data": {"token": "aHVzaA=="}}
        await side.write({"apiVersion": "v1", "kind": "Secret", **secret})
    assert await side.credential("creds", "named") == {"token": b"hush"}
    assert await side.credential("creds", "other") is None
    assert await side.credential("none", "named") is None
