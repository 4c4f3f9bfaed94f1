"""StatefulSets in order, DaemonSets on every node, budgets, namespaces that end."""

from typing import Any

from kube import Key

SELECTOR = {"matchLabels": {"app": "web"}}


def stateful(town: Any, template: Any, replicas: int = 3, image: str = "busybox:1", **spec: Any) -> None:
    town.apply("StatefulSet", "db", {"replicas": replicas, "serviceName": "db", "template": template(image), **spec})


def daemon(town: Any, template: Any, image: str = "busybox:1", **spec: Any) -> None:
    town.apply("DaemonSet", "agent", {"selector": SELECTOR, "template": template(image, **spec)})


def daemon_nodes(town: Any) -> list[str]:
    found = []
    for pod in town.live():
        terms = pod.spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        found += [field["values"][0] for term in terms for field in term["matchFields"]]
    return sorted(found)


def test_numbered_pods_are_made_each_when_the_one_before_is_ready(slow_town: Any, template: Any) -> None:
    town = slow_town
    stateful(town, template)
    assert town.names() == ["db-0"]
    town.start("db-0")
    assert town.names() == ["db-0", "db-1"]
    pod = town.read("Pod", "db-1")
    assert (pod.spec["hostname"], pod.spec["subdomain"]) == ("db-1", "db")
    assert pod.labels["apps.kubernetes.io/pod-index"] == "1"


def test_parallel_ones_are_made_at_once(slow_town: Any, template: Any) -> None:
    stateful(slow_town, template, podManagementPolicy="Parallel")
    assert slow_town.names() == ["db-0", "db-1", "db-2"]


def test_an_evicted_or_failed_numbered_pod_comes_back_under_its_name(town: Any, template: Any) -> None:
    stateful(town, template)
    before = town.read("Pod", "db-1").uid
    town.evict("db-1")
    town.finish("db-2", "Failed", 1)
    assert town.names() == ["db-0", "db-1", "db-2"]
    assert town.read("Pod", "db-1").uid != before
    assert town.status("StatefulSet", "db")["readyReplicas"] == 3


def test_the_highest_numbers_are_given_up_first_one_after_the_other(town: Any, template: Any) -> None:
    town.node("n")
    stateful(town, template)
    stateful(town, template, 1)
    assert [pod.name for pod in town.pods() if pod.deleting] == ["db-2"]
    town.cluster.gone(town.read("Pod", "db-2"))
    town.react()
    assert [pod.name for pod in town.pods() if pod.deleting] == ["db-1"]


def test_an_update_goes_from_the_highest_number_down_to_the_partition(slow_town: Any, template: Any) -> None:
    """And waits for each to be ready."""
    town = slow_town
    stateful(town, template, podManagementPolicy="Parallel")
    town.start("db-0", "db-1", "db-2")
    stateful(
        town,
        template,
        3,
        "busybox:2",
        podManagementPolicy="Parallel",
        updateStrategy={"rollingUpdate": {"partition": 1}},
    )
    for name in ("db-2", "db-1"):
        waiting = [pod for pod in town.live() if pod.status["phase"] == "Pending"]
        assert [(pod.name, pod.spec["containers"][0]["image"]) for pod in waiting] == [(name, "busybox:2")]
        town.start(name)
    assert town.status("StatefulSet", "db")["updatedReplicas"] == 2


def test_each_numbered_pod_has_a_claim_of_its_own(town: Any, template: Any) -> None:
    """The claim stays when the pod goes."""
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    stateful(town, template, 2, volumeClaimTemplates=claims)
    stateful(town, template, 1, volumeClaimTemplates=claims)
    found = sorted(key.name for key in town.cluster.store.of_kind("PersistentVolumeClaim"))
    assert found == ["data-db-0", "data-db-1"]
    assert town.read("Pod", "db-0").spec["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    ]


def test_a_daemon_is_on_every_node_that_fits_and_on_new_ones(town: Any, template: Any) -> None:
    """Cordoned nodes are tolerated, a foreign taint is not."""
    town.node("a", {"disk": "fast"})
    town.node("b", {"disk": "slow"})
    town.node("c", {"disk": "fast"}, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    town.node("d", {"disk": "fast"}, unschedulable=True)
    daemon(town, template, nodeSelector={"disk": "fast"})
    assert daemon_nodes(town) == ["a", "d"]
    town.node("e", {"disk": "fast"})
    assert daemon_nodes(town) == ["a", "d", "e"]
    status = town.status("DaemonSet", "agent")
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberUnavailable"]) == (3, 3, 0)


def test_a_daemon_leaves_a_node_that_does_not_fit_any_more(town: Any, template: Any) -> None:
    town.node("a", {"disk": "fast"})
    daemon(town, template, nodeSelector={"disk": "fast"})
    node = town.read("Node", "a")
    town.cluster.replace(node, {**node.metadata, "labels": {}}, node.body)
    town.react()
    assert town.live() == []


def test_a_daemon_respects_its_own_affinity(town: Any, template: Any) -> None:
    town.node("a", {"cores": "8"})
    town.node("b", {"cores": "64"})
    terms = [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["16"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    daemon(town, template, affinity={"nodeAffinity": required})
    assert daemon_nodes(town) == ["b"]


def test_a_daemon_is_updated_one_node_at_a_time(slow_town: Any, template: Any) -> None:
    town = slow_town
    for name in "abc":
        town.node(name)
    daemon(town, template)
    town.start(*town.names())
    daemon(town, template, "busybox:2")
    assert len([pod for pod in town.pods() if pod.deleting]) == 1


def test_a_finished_daemon_pod_is_made_again(town: Any, template: Any) -> None:
    town.node("a")
    daemon(town, template)
    town.finish(town.names()[0], "Failed", 1)
    assert len(town.pods()) == 1 and len(town.live()) == 1


def test_a_budget_counts_what_is_healthy(slow_town: Any, template: Any) -> None:
    """Three of four are ready; two have to be, so one may go; the fourth makes it two."""
    town = slow_town
    town.apply("PodDisruptionBudget", "keep", {"minAvailable": 2, "selector": SELECTOR})
    town.apply("ReplicaSet", "web", {"replicas": 4, "selector": SELECTOR, "template": template()})
    town.start(*town.names()[:3])
    status = town.status("PodDisruptionBudget", "keep")
    assert (
        status["expectedPods"],
        status["desiredHealthy"],
        status["currentHealthy"],
        status["disruptionsAllowed"],
    ) == (4, 2, 3, 1)
    town.start(town.names()[3])
    assert town.status("PodDisruptionBudget", "keep")["disruptionsAllowed"] == 2
    town.pod("stranger", {"app": "other"})
    assert town.status("PodDisruptionBudget", "keep")["expectedPods"] == 4


def test_a_budget_in_percent_counts_the_replicas_that_should_be(town: Any, template: Any) -> None:
    """Of seven replicas 30 % are 2.1: three may be missing where the most is given, three have to stay where the least is."""
    spec = {"replicas": 7, "selector": SELECTOR, "template": template()}
    town.apply("Deployment", "web", spec)
    town.apply("PodDisruptionBudget", "most", {"maxUnavailable": "30%", "selector": SELECTOR})
    town.apply("PodDisruptionBudget", "least", {"minAvailable": "30%", "selector": SELECTOR})
    assert town.status("PodDisruptionBudget", "most")["desiredHealthy"] == 4
    assert town.status("PodDisruptionBudget", "least")["desiredHealthy"] == 3


def test_a_budget_follows_pods_whose_labels_change(town: Any) -> None:
    town.apply("PodDisruptionBudget", "keep", {"minAvailable": 0, "selector": SELECTOR})
    town.pod("p", {"app": "web"})
    assert town.status("PodDisruptionBudget", "keep")["currentHealthy"] == 1
    pod = town.read("Pod", "p")
    town.cluster.replace(pod, {**pod.metadata, "labels": {}}, pod.body)
    town.react()
    assert town.status("PodDisruptionBudget", "keep")["currentHealthy"] == 0


def test_a_namespace_goes_when_all_in_it_is_gone(town: Any, template: Any) -> None:
    """Nothing in it is made again meanwhile."""
    town.node("n")
    town.apply("Deployment", "web", {"replicas": 2, "selector": SELECTOR, "template": template()})
    town.apply("ConfigMap", "settings", {})
    town.delete("Namespace", "default")
    assert town.status("Namespace", "default")["phase"] == "Terminating"
    assert {pod.deleting for pod in town.pods()} == {True}
    for pod in town.pods():
        town.cluster.gone(pod)
    town.react()
    assert not any(key.namespace == "default" for key in town.cluster.store.objects)
    assert town.cluster.store.get(Key("Namespace", "", "default")) is None
