"""Deployments and ReplicaSets: as many pods as asked for, of the newest template, step by step."""

from typing import Any

from kube import Key

SELECTOR = {"matchLabels": {"app": "web"}}


def deploy(town: Any, template: Any, replicas: int = 3, image: str = "busybox:1", **spec: Any) -> Any:
    wanted = {"replicas": replicas, "selector": SELECTOR, "template": template(image), **spec}
    return town.apply("Deployment", "web", wanted)


def images(town: Any) -> list[str]:
    return sorted(pod.spec["containers"][0]["image"] for pod in town.live())


def sets(town: Any) -> list[Any]:
    return list(town.cluster.store.of_kind("ReplicaSet.apps").values())


def test_a_deployment_makes_a_set_that_makes_pods(town: Any, template: Any) -> None:
    """Names go from the Deployment over the template's hash to five letters of the pod's own."""
    deploy(town, template)
    [replica_set] = sets(town)
    assert replica_set.name.startswith("web-") and replica_set.labels["pod-template-hash"] in replica_set.name
    assert len(town.names()) == 3
    assert all(
        name.startswith(replica_set.name + "-") and len(name) == len(replica_set.name) + 6 for name in town.names()
    )
    status = town.status("Deployment", "web")
    assert [status[name] for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")] == [3] * 4
    assert town.condition("Deployment", "web", "Available")["status"] == "True"
    assert town.condition("Deployment", "web", "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_pods_of_a_workload_that_asks_for_a_minimum_are_a_gang(town: Any, template: Any) -> None:
    """One for each set: pods of two versions do not wait for each other."""
    minimum = {"annotations": {"scheduling.volcano.sh/group-min-member": "3"}}
    town.apply("Deployment", "web", {"replicas": 3, "selector": SELECTOR, "template": template("busybox:1")}, **minimum)
    [replica_set] = sets(town)
    told = {"name": f"podgroup-{replica_set.uid}", "min-available": "3"}
    gangs = [pod.annotations for pod in town.live()]
    assert gangs == [{f"gang.scheduling.koordinator.sh/{name}": text for name, text in told.items()}] * 3


def test_pods_of_a_template_that_names_a_group_are_in_that_one(town: Any, template: Any) -> None:
    given = template("busybox:1")
    given["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "own"}
    minimum = {"annotations": {"scheduling.volcano.sh/group-min-member": "3"}}
    town.apply("Deployment", "web", {"replicas": 2, "selector": SELECTOR, "template": given}, **minimum)
    assert [pod.annotations for pod in town.live()] == [{"scheduling.k8s.io/group-name": "own"}] * 2


def test_the_same_history_makes_the_same_names(template: Any, town: Any) -> None:
    deploy(town, template)
    other = type(town)()
    deploy(other, template)
    assert town.names() == other.names()


def test_once_at_rest_nothing_is_written_any_more(town: Any, template: Any) -> None:
    deploy(town, template)
    town.made.clear()
    town.advance(3600)
    town.restart()
    town.react()
    assert town.made == []


def test_scaling_up_and_down(town: Any, template: Any) -> None:
    deploy(town, template, 2)
    deploy(town, template, 5)
    assert len(town.names()) == 5
    deploy(town, template, 1)
    assert len(town.names()) == 1
    assert town.status("Deployment", "web")["replicas"] == 1


def test_an_evicted_pod_is_made_again_under_a_new_name(town: Any, template: Any) -> None:
    deploy(town, template)
    before = set(town.names())
    gone = min(before)
    town.evict(gone)
    assert len(town.names()) == 3 and gone not in town.names()


def test_a_failed_pod_is_replaced_at_once_and_kept_to_be_looked_at(town: Any, template: Any) -> None:
    deploy(town, template)
    town.finish(town.names()[0], "Failed", 1)
    assert len(town.names()) == 3 and len(town.pods()) == 4


def test_a_pod_on_its_way_out_does_not_count(town: Any, template: Any) -> None:
    town.node("n")
    deploy(town, template)
    town.delete("Pod", town.names()[0])
    assert len(town.names()) == 3 and len(town.pods()) == 4


def test_an_update_never_has_more_than_the_surge_or_less_than_is_needed(slow_town: Any, template: Any) -> None:
    """Four replicas, one more and one less allowed: five at most, three available at least, at every step."""
    town = slow_town
    rolling = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}
    deploy(town, template, 4, **rolling)
    town.start(*town.names())
    deploy(town, template, 4, "busybox:2", **rolling)
    for _ in range(20):
        waiting = [pod.name for pod in town.live() if pod.status["phase"] == "Pending"]
        ready = len(town.live()) - len(waiting)
        assert len(town.live()) <= 5 and ready >= 3
        if not waiting:
            break
        town.start(waiting[0])
    assert images(town) == ["busybox:2"] * 4
    assert town.status("Deployment", "web")["updatedReplicas"] == 4


def test_an_update_that_does_not_start_keeps_the_old_pods(slow_town: Any, template: Any) -> None:
    """And says after the deadline that it does not get on."""
    town = slow_town
    deploy(town, template, 4, progressDeadlineSeconds=60)
    town.start(*town.names())
    deploy(town, template, 4, "broken", progressDeadlineSeconds=60)
    town.advance(59)
    assert images(town).count("busybox:1") == 3
    assert town.condition("Deployment", "web", "Progressing")["status"] == "True"
    town.advance(2)
    progressing = town.condition("Deployment", "web", "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_turning_back_uses_the_old_set(town: Any, template: Any) -> None:
    """Its revision becomes the newest."""
    deploy(town, template)
    [first] = sets(town)
    deploy(town, template, image="busybox:2")
    deploy(town, template)
    assert len(sets(town)) == 2
    assert images(town) == ["busybox:1"] * 3
    assert town.read("ReplicaSet", first.name).annotations["deployment.kubernetes.io/revision"] == "3"


def test_recreate_starts_the_new_pods_when_the_last_old_one_is_gone(town: Any, template: Any) -> None:
    town.node("n")
    deploy(town, template, 2, strategy={"type": "Recreate"})
    deploy(town, template, 2, "busybox:2", strategy={"type": "Recreate"})
    assert town.live() == [] and len(town.pods()) == 2
    for pod in town.pods():
        town.cluster.gone(pod)
    town.react()
    assert images(town) == ["busybox:2"] * 2


def test_a_paused_deployment_is_not_updated(town: Any, template: Any) -> None:
    deploy(town, template, 2)
    deploy(town, template, 2, "busybox:2", paused=True)
    assert images(town) == ["busybox:1"] * 2
    deploy(town, template, 2, "busybox:2")
    assert images(town) == ["busybox:2"] * 2


def test_old_sets_are_kept_up_to_the_history_limit(town: Any, template: Any) -> None:
    for number in range(5):
        deploy(town, template, 1, f"busybox:{number}", revisionHistoryLimit=2)
    assert len(sets(town)) == 3


def test_pods_that_name_the_deployment_are_its_replicas(town: Any, template: Any) -> None:
    """As many as wanted are there already: none are added to them, and an update replaces them."""
    town.starts = False
    item = deploy(town, template, 3)
    for number in range(3):
        town.pod(f"web-{number}", {"app": "web"}, item, "n1")
        town.start(f"web-{number}")
    assert town.names() == ["web-0", "web-1", "web-2"]
    assert town.status("Deployment", "web")["readyReplicas"] == 3
    town.starts = True
    deploy(town, template, 3, "busybox:2")
    assert images(town) == ["busybox:2"] * 3


def test_pods_of_a_replica_set_given_beside_it_are_its_replicas(town: Any, template: Any) -> None:
    town.starts = False
    item = town.apply("ReplicaSet", "web", {"replicas": 2, "selector": SELECTOR, "template": template()})
    for number in range(2):
        town.pod(f"web-{number}", {"app": "web"}, item, "n1")
        town.start(f"web-{number}")
    assert town.names() == ["web-0", "web-1"]


def test_what_is_given_up_first(slow_town: Any, template: Any) -> None:
    """Pods without a node, then those that are not ready, then cheap ones."""
    town = slow_town
    town.apply("ReplicaSet", "web", {"replicas": 4, "selector": SELECTOR, "template": template()})
    _waits, ill, cheap, dear = town.names()
    town.start(ill, cheap, dear)
    town.unready(ill)
    pod = town.read("Pod", cheap)
    cost = {**pod.metadata, "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}
    town.cluster.replace(pod, cost, pod.body)
    for replicas, left in ((3, {ill, cheap, dear}), (2, {cheap, dear}), (1, {dear})):
        town.apply("ReplicaSet", "web", {"replicas": replicas, "selector": SELECTOR, "template": template()})
        assert set(town.names()) == left


def test_a_pod_is_available_when_it_has_been_ready_long_enough(town: Any, template: Any) -> None:
    town.apply(
        "ReplicaSet", "web", {"replicas": 1, "minReadySeconds": 30, "selector": SELECTOR, "template": template()}
    )
    assert town.status("ReplicaSet", "web")["availableReplicas"] == 0
    town.advance(30)
    assert town.status("ReplicaSet", "web")["availableReplicas"] == 1


def test_deleting_a_deployment_takes_all_with_it(town: Any, template: Any) -> None:
    deploy(town, template)
    town.delete("Deployment", "web")
    assert town.pods() == [] and sets(town) == []


def test_pods_get_the_priority_of_the_class_that_their_template_names(town: Any, template: Any) -> None:
    """As an API server fills it in; what a template says itself stays, and pods of one template share one spec."""
    for name, value, more in (("online", 1000, {}), ("usual", 7, {"globalDefault": True})):
        town.cluster.create(Key("PriorityClass.scheduling.k8s.io", "", name), {}, {"value": value, **more}, {})
    made = template("busybox:1")
    for name, said in (
        ("a", {"priorityClassName": "online"}),
        ("b", {}),
        ("c", {"priorityClassName": "online", "priority": 3}),
    ):
        labels = {"matchLabels": {"app": "web"}}
        spec = {**made, "spec": {**made["spec"], **said}}
        town.apply("Deployment", name, {"replicas": 2, "selector": labels, "template": spec})
    found = {pod.name[0]: (pod.spec["priority"], pod.spec.get("priorityClassName")) for pod in town.live()}
    assert found == {"a": (1000, "online"), "b": (7, "usual"), "c": (3, "online")}
