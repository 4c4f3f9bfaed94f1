"""Decisions are carried out whole or refused, and each comes to one outcome."""

from typing import Any

import pytest

from kube import Decision, Key, Manifest, Mutation, Verb
from tidegate import subjects

POD = Key("Pod", "default", "p")
JOB = Key("Job.batch.volcano.sh", "default", "j")


def pod(name: str = "p", **parts: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default", **parts.pop("metadata", {})}
    spec = {"containers": [{"name": "main"}], **parts.pop("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **parts}


def job(**spec: Any) -> Manifest:
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def create(name: str, owner: str = "") -> Mutation:
    owners = {"ownerReferences": [{"uid": owner, "name": "j", "controller": True}]} if owner else {}
    return Mutation(Verb.CREATE, Key("Pod", "default", name), manifest=pod(name, metadata=owners))


def bind(item: Any, node: str = "n1", **parts: Any) -> Mutation:
    return Mutation(Verb.BIND, item.key, item.uid, node=node, **parts)


def decision(*mutations: Mutation, subject: Key = JOB, uid: str = "") -> Decision:
    return Decision("Something", subject, uid, "Because", "so it is", mutations)


def test_a_decision_makes_changes_and_deletes_in_one_change_set(rig: Any) -> None:
    rig.write(pod("old"), pod("other"), job())
    other = Key("Pod", "default", "other")
    before = rig.revision
    (outcome,) = rig.decide(
        "job_controller",
        decision(
            create("new", "u1"),
            Mutation(Verb.PATCH, other, patch={"metadata": {"labels": {"a": "b"}}, "spec": {"priority": 1}}),
            Mutation(Verb.STATUS, JOB, patch={"state": {"phase": "Running"}}),
            Mutation(Verb.DELETE, Key("Pod", "default", "old")),
        ),
    )
    assert outcome.applied and outcome.reasons == {} and rig.revision == before + 1
    assert rig.names("Pod") == ["new", "other"]
    changed = rig.pod("other")
    assert (changed.labels, changed.spec["priority"]) == ({"a": "b"}, 1)
    assert rig.get("Job.batch.volcano.sh", "j").status == {"state": {"phase": "Running"}}
    made = rig.pod("new")
    assert made.status == {"phase": "Pending"} and made.created and made.metadata["generation"] == 1


def test_one_bad_mutation_refuses_the_whole_decision_and_no_other(rig: Any) -> None:
    rig.write(pod())
    gone = Mutation(Verb.PATCH, Key("Pod", "default", "gone"), patch={"spec": {"a": 1}})
    good, bad, later = rig.decide(
        "job_controller", decision(create("a")), decision(create("b"), gone), decision(create("c"))
    )
    assert (good.applied, bad.applied, later.applied) == (True, False, True)
    assert bad.reasons == {"Pod/default/gone": "is gone"}
    assert rig.names("Pod") == ["a", "c", "p"]


@pytest.mark.parametrize(
    "broken",
    [
        Mutation(Verb.PATCH, POD, patch={"metadata": ["no", "mapping"]}),
        Mutation(Verb.PATCH, POD, patch={"metadata": "text"}),
        Mutation(Verb.STATUS, JOB, patch=["no", "mapping"]),  # type: ignore[arg-type]
        Mutation(Verb.CREATE, Key("Pod", "default", "x"), manifest={**pod("x"), "spec": ["no", "mapping"]}),
    ],
)
def test_a_decision_that_fails_halfway_is_taken_back_and_refused(rig: Any, broken: Mutation) -> None:
    """What was done of it is undone; the decisions beside it, and what they changed of the same objects, stand."""
    rig.write(pod(), job())
    label = Mutation(Verb.PATCH, POD, patch={"metadata": {"labels": {"first": "yes"}}})
    again = Mutation(Verb.PATCH, POD, patch={"metadata": {"labels": {"second": "yes"}}, "spec": {"priority": 3}})
    status = Mutation(Verb.STATUS, JOB, patch={"message": "half done"})
    first, bad, last = rig.decide(
        "job_controller", decision(label), decision(create("b"), again, status, broken), decision(create("c"))
    )
    assert (first.applied, bad.applied, last.applied) == (True, False, True)
    assert "cannot be carried out" in bad.reasons[""]
    assert rig.names("Pod") == ["c", "p"]
    assert (rig.pod("p").labels, rig.pod("p").status) == ({"first": "yes"}, {"phase": "Pending"})
    assert "priority" not in rig.pod("p").spec and rig.get("Job.batch.volcano.sh", "j").status == {}


def test_deleting_and_failing_brings_back_what_was_deleted_with_all_it_owns(rig: Any) -> None:
    rig.write(job())
    uid = rig.get("Job.batch.volcano.sh", "j").uid
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    rig.write(pod("child", metadata={"ownerReferences": [owner]}))
    broken = Mutation(Verb.PATCH, Key("Namespace", "", "default"), patch={"metadata": "text"})
    (outcome,) = rig.decide("job_controller", decision(Mutation(Verb.DELETE, JOB), broken))
    assert not outcome.applied
    assert rig.names("Pod") == ["child"] and rig.names("Job.batch.volcano.sh") == ["j"]
    rig.decide("job_controller", decision(Mutation(Verb.DELETE, JOB)))
    assert rig.names("Pod") == []


def test_a_decision_on_a_subject_that_changed_since_is_refused_with_the_revisions(rig: Any) -> None:
    decided_on = rig.write(job()).revision
    uid = rig.get("Job.batch.volcano.sh", "j").uid
    changed = rig.write(job(queue="other"), expected=decided_on).revision
    (outcome,) = rig.decide("job_controller", decision(create("a"), uid=uid), on=decided_on)
    assert not outcome.applied
    assert outcome.reasons == {"Job/default/j": f"changed at revision {changed}, decided on {decided_on}"}
    (again,) = rig.decide("job_controller", decision(create("a"), uid=uid))
    assert again.applied


def test_a_change_of_the_subjects_status_alone_does_not_matter(rig: Any) -> None:
    decided_on = rig.write(job()).revision
    uid = rig.get("Job.batch.volcano.sh", "j").uid
    rig.decide("job_controller", decision(Mutation(Verb.STATUS, JOB, patch={"state": {"phase": "Running"}})))
    (outcome,) = rig.decide("job_controller", decision(create("a"), uid=uid), on=decided_on)
    assert outcome.applied


def test_a_subject_of_the_same_name_but_another_uid_is_gone(rig: Any) -> None:
    rig.write(job())
    old = rig.get("Job.batch.volcano.sh", "j").uid
    rig.delete(JOB)
    rig.write(job())
    (outcome,) = rig.decide("job_controller", decision(create("a"), uid=old))
    assert outcome.reasons == {"Job/default/j": "is gone"}
    (patched,) = rig.decide("job_controller", decision(Mutation(Verb.PATCH, JOB, old, patch={"spec": {"a": 1}})))
    assert patched.reasons == {"Job/default/j": "is gone"}


def test_a_commit_of_a_term_that_is_over_is_refused(rig: Any) -> None:
    rig.decide("job_controller", epoch=5, started=True)
    (outcome,) = rig.decide("job_controller", decision(create("a")), epoch=4)
    assert outcome.reasons == {"": "epoch 4 of job_controller is over"}
    (current,) = rig.decide("job_controller", decision(create("a")), epoch=5)
    assert current.applied


@pytest.mark.parametrize(
    ("service", "verb", "kind"),
    [
        ("gang_scheduler", Verb.CREATE, "Pod"),
        ("gang_scheduler", Verb.STATUS, "Job.batch.volcano.sh"),
        ("queue_manager", Verb.BIND, "Pod"),
        ("queue_manager", Verb.CREATE, "Pod"),
        ("job_controller", Verb.BIND, "Pod"),
        ("job_controller", Verb.PATCH, "Node"),
        ("job_controller", Verb.STATUS, "Queue.scheduling.volcano.sh"),
    ],
)
def test_nobody_decides_what_is_anothers(rig: Any, service: str, verb: Verb, kind: str) -> None:
    key = Key(kind, "" if kind in ("Node", "Queue.scheduling.volcano.sh") else "default", "x")
    (outcome,) = rig.decide(service, decision(Mutation(verb, key, patch={"spec": {}})))
    assert not outcome.applied
    assert outcome.reasons == {str(key): f"{service} does not decide {verb.name} of {kind}"}


def test_making_what_is_there_already_is_done_when_it_belongs_to_the_same(rig: Any) -> None:
    rig.decide("job_controller", decision(create("a", "u1")))
    before = rig.pod("a")
    same, foreign = rig.decide("job_controller", decision(create("a", "u1")), decision(create("a", "u2")))
    assert same.applied and not foreign.applied
    assert foreign.reasons == {"Pod/default/a": "is there already and belongs to somebody else"}
    assert rig.pod("a").uid == before.uid


def test_a_gang_is_bound_whole_with_its_devices(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("a"), pod("b"))
    gang = decision(*(bind(rig.pod(name), devices={"gpu": [0]}) for name in "ab"), subject=POD)
    (outcome,) = rig.decide("gang_scheduler", gang)
    assert outcome.applied
    for name in "ab":
        assert rig.pod(name).spec["nodeName"] == "n1"
        assert rig.pod(name).annotations == {"tidegate.dev/devices": '{"gpu":[0]}'}
        assert rig.pod(name).status["conditions"][0]["type"] == "PodScheduled"


def test_a_gang_of_which_one_cannot_be_bound_is_not_bound_at_all(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("a"), pod("b"))
    a, b = rig.pod("a"), rig.pod("b")
    rig.delete(b.key)
    (outcome,) = rig.decide("gang_scheduler", decision(bind(a), bind(b)))
    assert outcome.reasons == {"Pod/default/b": "is gone"}
    assert "nodeName" not in rig.pod("a").spec


def test_a_pod_is_bound_once(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("a"))
    a = rig.pod("a")
    first, second = rig.decide("gang_scheduler", decision(bind(a)), decision(bind(a)))
    assert first.applied and second.reasons == {"Pod/default/a": "is bound to n1 already"}


def test_a_binding_to_a_node_that_is_gone_is_refused(rig: Any) -> None:
    rig.write(pod("a"))
    (outcome,) = rig.decide("gang_scheduler", decision(bind(rig.pod("a"))))
    assert outcome.reasons == {"Pod/default/a": "node n1 is gone"}


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"allocatable": {"cpu": "4"}}},
        {"metadata": {"labels": {"zone": "b"}}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    ],
)
def test_a_binding_to_a_node_that_changed_since_is_refused(rig: Any, change: dict[str, Any]) -> None:
    rig.node("n1")
    decided_on = rig.write(pod("a")).revision
    changed = rig.report("n1", **change).revision
    (outcome,) = rig.decide("gang_scheduler", decision(bind(rig.pod("a"))), on=decided_on)
    assert outcome.reasons == {"Pod/default/a": f"node n1 changed at revision {changed}, decided on {decided_on}"}


def test_what_a_placement_does_not_rest_on_does_not_matter(rig: Any) -> None:
    rig.node("n1")
    decided_on = rig.write(pod("a")).revision
    rig.report("n1", status={"conditions": [{"type": "MemoryPressure", "status": "False"}], "nodeInfo": {"x": 1}})
    (outcome,) = rig.decide("gang_scheduler", decision(bind(rig.pod("a"))), on=decided_on)
    assert outcome.applied


@pytest.mark.parametrize("name", ["kubernetes.io/batch-cpu", "koordinator.sh/batch-cpu"])
def test_what_a_node_lends_matters_to_those_alone_who_live_on_that(rig: Any, name: str) -> None:
    rig.node("n1")
    rig.write(pod("plain"))
    container = {"name": "c", "image": "i", "resources": {"requests": {name: "1000"}}}
    decided_on = rig.write(pod("lent", spec={"containers": [container]})).revision
    changed = rig.report("n1", status={"allocatable": {"kubernetes.io/batch-cpu": "2000"}}).revision
    (bound,) = rig.decide("gang_scheduler", decision(bind(rig.pod("plain"))), on=decided_on)
    (refused,) = rig.decide("gang_scheduler", decision(bind(rig.pod("lent"))), on=decided_on)
    words = f"what node n1 lends changed at revision {changed}, decided on {decided_on}"
    assert bound.applied and refused.reasons == {"Pod/default/lent": words}
    (later,) = rig.decide("gang_scheduler", decision(bind(rig.pod("lent"))))
    assert later.applied


def test_a_binding_decided_before_somebody_elses_pod_took_room_on_the_node_is_refused(rig: Any) -> None:
    rig.node("n1")
    decided_on = rig.write(pod("a")).revision
    rig.write(pod("foreign", spec={"nodeName": "n1"}))
    (outcome,) = rig.decide("gang_scheduler", decision(bind(rig.pod("a"))), on=decided_on)
    assert not outcome.applied and "node n1 changed" in outcome.reasons["Pod/default/a"]


def test_the_schedulers_own_bindings_do_not_make_its_next_ones_stale(rig: Any) -> None:
    rig.node("n1")
    decided_on = rig.write(pod("a"), pod("b")).revision
    a, b = rig.pod("a"), rig.pod("b")
    (first,) = rig.decide("gang_scheduler", decision(bind(a)), on=decided_on)
    (second,) = rig.decide("gang_scheduler", decision(bind(b)), on=decided_on)
    assert first.applied and second.applied


def test_a_pod_that_was_changed_or_is_being_deleted_is_not_bound(rig: Any) -> None:
    rig.node("n1")
    decided_on = rig.write(pod("a"), pod("b", metadata={"finalizers": ["example.com/x"]})).revision
    a, b = rig.pod("a"), rig.pod("b")
    rig.write(pod("a", metadata={"labels": {"x": "y"}}), expected=decided_on)
    rig.delete(b.key)
    changed, deleted = rig.decide("gang_scheduler", decision(bind(a)), decision(bind(b)), on=decided_on)
    assert "changed at revision" in changed.reasons["Pod/default/a"]
    assert deleted.reasons == {"Pod/default/b": "is being deleted"}


def test_an_evicted_pod_says_why_and_gets_its_grace_period(rig: Any) -> None:
    rig.node("n1")
    rig.write(pod("a", spec={"terminationGracePeriodSeconds": 7}))
    rig.decide("gang_scheduler", decision(bind(rig.pod("a"))))
    a = rig.pod("a")
    rig.report("n1", pods=[(a, {"phase": "Running"})])
    (outcome,) = rig.decide("gang_scheduler", decision(Mutation(Verb.EVICT, a.key, a.uid)))
    assert outcome.applied
    evicted = rig.pod("a")
    assert evicted.deleting and evicted.metadata["deletionGracePeriodSeconds"] == 7
    (condition,) = [c for c in evicted.status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (condition["reason"], condition["message"]) == ("Because", "so it is")
    assert rig.decide("gang_scheduler", decision(Mutation(Verb.EVICT, a.key, "another")))[0].applied
    rig.report("n1", gone=[a.uid])
    assert rig.names("Pod") == []


def test_a_patch_cannot_touch_identity_or_status(rig: Any) -> None:
    rig.write(pod())
    patch = {"status": {"phase": "Running"}, "kind": "Node", "apiVersion": "v2", "spec": {"priority": 1}}
    rig.decide("job_controller", decision(Mutation(Verb.PATCH, POD, patch=patch)))
    changed = rig.pod("p")
    assert set(changed.body) == {"spec"} and changed.status == {"phase": "Pending"} and changed.spec["priority"] == 1


def test_a_decision_without_mutations_comes_to_its_outcome_too(rig: Any) -> None:
    (outcome,) = rig.decide("queue_manager", Decision("EntitlementsComputed", JOB, payload={"version": 1}))
    assert outcome.applied and outcome.name == "EntitlementsComputed"


def test_a_commit_that_cannot_be_read_is_parked_and_the_next_is_carried_out(rig: Any) -> None:
    log = rig.bus.log(subjects.decisions("job_controller"))
    rig.do(log.append(b"\xff\xff", expected=0, message_id="x"))
    (outcome,) = rig.decide("job_controller", decision(create("a")))
    assert outcome.applied
    (parked,) = rig.parked()
    assert (parked.service, parked.source) == ("cluster_gateway", "decision.job_controller/1")


def test_decisions_of_a_commit_that_cannot_be_read_are_refused_so_that_nobody_waits_for_them(rig: Any) -> None:
    from tidegate.decision.v1 import decision_pb2

    commit = decision_pb2.Commit(service="job_controller", epoch=1, blobs=[b"{no json"])
    for number in (1, 2):
        item = commit.decisions.add(id=f"job_controller/1/{number}", name="PodsMade")
        item.subject.kind, item.subject.namespace, item.subject.name = "Job.batch.volcano.sh", "default", "j"
        item.mutations.add(verb=1, body=1 if number == 2 else 0).ref.name = f"p{number}"
    rig.do(
        rig.bus.log(subjects.decisions("job_controller")).append(commit.SerializeToString(), expected=0, message_id="x")
    )
    outcomes = rig.outcomes()
    assert [outcome.decision_id for outcome in outcomes] == ["job_controller/1/1", "job_controller/1/2"]
    assert not any(outcome.applied for outcome in outcomes) and "cannot be read" in outcomes[0].reasons[""]
    assert len(rig.parked()) == 1 and rig.names("Pod") == []
    rig.restart()
    assert len(rig.outcomes()) == 2


def test_a_patch_made_before_somebody_else_changed_the_object_is_refused(rig: Any) -> None:
    """Its status may have changed meanwhile, and what the decider did itself it knows of."""
    decided_on = rig.write(pod()).revision
    rig.decide("gang_scheduler", decision(Mutation(Verb.STATUS, POD, patch={"message": "waits"})))
    patches = [Mutation(Verb.PATCH, POD, patch={"metadata": {"labels": {"n": str(n)}}}) for n in range(3)]
    first, second = rig.decide("job_controller", decision(patches[0]), decision(patches[1]), on=decided_on)
    assert first.applied and second.applied
    seen = rig.revision
    changed = rig.write(pod(spec={"priority": 3}), expected=seen).revision
    (late,) = rig.decide("job_controller", decision(patches[2]), on=seen)
    assert late.reasons == {"Pod/default/p": f"was changed by user at revision {changed}, decided on {seen}"}
    (again,) = rig.decide("job_controller", decision(patches[2]))
    assert again.applied


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "keep", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def evict(item: Any) -> Decision:
    return decision(Mutation(Verb.EVICT, item.key, item.uid), subject=item.key, uid=item.uid)


def test_a_disruption_budget_is_kept_by_all_but_a_preemptor(rig: Any) -> None:
    labels = {"metadata": {"labels": {"app": "web"}}}
    rig.node("n1")
    rig.write(BUDGET, pod("a", **labels, spec={"nodeName": "n1"}), pod("b", **labels, spec={"nodeName": "n1"}))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    rig.report("n1", pods=[(rig.pod(name), ready) for name in ("a", "b")])
    outcomes = rig.decide("slo_controller", evict(rig.pod("a")), evict(rig.pod("b")))
    assert [outcome.applied for outcome in outcomes] == [True, False]
    assert "the disruption budget keep forbids it: 1 pod is healthy, 1 has to be" in str(outcomes[1].reasons)
    (outcome,) = rig.decide("gang_scheduler", evict(rig.pod("b")))
    assert outcome.applied
