"""InferenceServices with a goal in the user's words, as the core sees them."""

from typing import Any

import pytest

from kube import Key, rfc3339

SERVICE = "InferenceService.serving.kserve.io"
GOAL = "tidegate.dev/target"
MODE, CLASS = "serving.kserve.io/deploymentMode", "serving.kserve.io/autoscalerClass"
DEPLOYMENT = "m-predictor-00001-deployment"
HPA = Key("HorizontalPodAutoscaler.autoscaling", "default", "m-predictor")


class Service:
    """A service of replicas that answer ten requests at a time; requests take a second."""

    def __init__(
        self,
        cluster: Any,
        start: int = 60,
        goal: str = "queue wait <= 1s",
        mode: str = "Serverless",
        **annotations: str,
    ) -> None:
        self.cluster, self.start, self.pods = cluster, start, dict[str, int]()
        self.deployment = DEPLOYMENT if mode == "Serverless" else "m-predictor"
        self.said = {MODE: mode, GOAL: goal, **{f"tidegate.dev/{name}": value for name, value in annotations.items()}}
        self.apply()

    def apply(self, **predictor: Any) -> None:
        """The service is as it was made, but for what is given."""
        containers = [{"name": "kserve-container", "image": "model:1"}]
        whole = {"containers": containers, "minReplicas": 0, "maxReplicas": 50, "containerConcurrency": 10, **predictor}
        self.cluster.put(
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {"name": "m", "annotations": self.said},
                "spec": {"predictor": whole},
            }
        )

    def condition(self, kind: str = "SizedByGoal") -> tuple[str, str, str]:
        """Status, reason and message."""
        listed = self.cluster.store.objects[Key(SERVICE, "default", "m")].status["conditions"]
        return next((one["status"], one["reason"], one["message"]) for one in listed if one["type"] == kind)

    def bear(self, load: float, seconds: int, waiting: float = 0) -> None:
        """So many requests at a time for a while; the request path says so every two seconds, and pods start in the meantime."""
        for _ in range(seconds // 2):
            self.cluster.advance(2)
            self._live()
            self._say("rps", load)
            self._say("concurrency", load + waiting)

    @property
    def replicas(self) -> int:
        return int(self.cluster.replicas(self.deployment))

    def why(self) -> str:
        return next(one.message for one in reversed(self.cluster.decisions) if one.name == "ReplicasScaled")

    def _say(self, metric: str, value: float) -> None:
        described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
        spec = {
            "describedObject": described,
            "metric": {"name": metric},
            "timestamp": self.cluster.time(),
            "value": f"{round(value * 1000)}m",
        }
        name = f"m-{metric}"
        self.cluster.put(
            {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": name}, "spec": spec}
        )

    def _live(self) -> None:
        """Pods are made, start, and go, as the Deployment asks."""
        found = self.cluster.store.objects[Key("Deployment.apps", "default", self.deployment)]
        now = self.cluster.now
        while len(self.pods) < self.replicas:
            self.pods[f"p{now}-{len(self.pods)}"] = now
        while len(self.pods) > self.replicas:
            name, _ = self.pods.popitem()
            self.cluster.remove(Key("Pod", "default", name))
        ready = 0
        for name, made in self.pods.items():
            is_ready = made + self.start * 1000 <= now
            ready += is_ready
            turned = rfc3339(made + self.start * 1000 if is_ready else made)
            condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": turned}
            metadata = {
                "name": name,
                "creationTimestamp": rfc3339(made),
                "labels": found.spec["selector"]["matchLabels"],
            }
            status = {"phase": "Running", "conditions": [condition]}
            self.cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})
        status = {"replicas": len(self.pods), "availableReplicas": ready}
        self.cluster.core.fold([self.cluster.store.put(found.changed(status=status))], now)
        self.cluster.look()


def test_a_service_with_a_goal_is_sized_by_it_and_says_by_what(cluster: Any) -> None:
    service = Service(cluster)
    service.bear(25, 240)
    assert 4 <= service.replicas <= 5
    service.bear(60, 300)
    assert 7 <= service.replicas <= 12
    assert "starts in 60 s" in service.why()
    assert "requests at a time of late" in service.why()


def test_how_long_replicas_take_to_start_is_learned_from_its_pods(cluster: Any) -> None:
    service = Service(cluster, start=20)
    service.bear(25, 120)
    service.bear(80, 60)
    assert "starts in 20 s" in service.why()


def test_samples_that_stop_coming_hold_the_size_however_long(cluster: Any) -> None:
    service = Service(cluster)
    service.bear(45, 300)
    there = service.replicas
    assert there > 4
    cluster.advance(3600)
    assert service.replicas == there
    service.bear(0, 1200)
    assert service.replicas == 0


def test_a_restart_changes_nothing(cluster: Any) -> None:
    """What is learned of a bursty hour outlives the process that learned it."""
    service = Service(cluster)
    for _ in range(6):
        service.bear(70, 20)
        service.bear(2, 60)
    there, before = service.replicas, cluster.memory
    assert there > 7
    cluster.restart()
    service.bear(2, 20)
    assert service.replicas == there
    assert b'"pursuit":{' in before["serving/default/m"]


def test_spare_replicas_are_kept_beyond_what_is_needed(cluster: Any) -> None:
    service = Service(cluster, **{"spare-replicas": "2"})
    service.bear(25, 240)
    assert 6 <= service.replicas <= 7
    assert "2 spare" in service.why()


def test_what_is_starting_is_not_asked_for_a_second_time(cluster: Any) -> None:
    service = Service(cluster)
    service.bear(10, 120)
    service.bear(60, 4, waiting=40)
    asked = service.replicas
    for waiting in range(80, 300, 40):
        service.bear(60, 4, waiting=waiting)
    assert asked < service.replicas <= 2 * asked + 6


@pytest.mark.parametrize(
    ("annotations", "words"),
    [({"target": "as fast as you can"}, "is no target"), ({"spare-replicas": "many"}, "is no number of replicas")],
)
def test_a_goal_that_makes_no_sense_is_told_in_the_conditions(
    cluster: Any, annotations: dict[str, str], words: str
) -> None:
    Service(cluster, **annotations)
    conditions = cluster.store.objects[Key(SERVICE, "default", "m")].status["conditions"]
    ready = next(one for one in conditions if one["type"] == "Ready")
    assert ready["status"] == "False"
    assert words in ready["message"]


def test_a_goal_takes_the_place_of_the_autoscaler_in_standard_mode(cluster: Any) -> None:
    service = Service(cluster, mode="RawDeployment")
    assert HPA not in cluster.store.objects
    assert service.replicas == 1
    service.bear(25, 240)
    assert 4 <= service.replicas <= 5
    service.bear(60, 300)
    assert 7 <= service.replicas <= 12
    assert "starts in 60 s" in service.why()
    assert service.condition() == ("True", "SizedByGoal", "sized by queue wait ≤ 1000 ms")
    service.bear(0, 1300)
    assert service.replicas == 1, "in standard mode there is at least one"


def test_both_modes_come_to_the_same_sizes(make_cluster: type) -> None:
    sizes = []
    for mode in ("Serverless", "RawDeployment"):
        service, seen = Service(make_cluster(), mode=mode), list[int]()
        service.bear(5, 90)  # a first revision has no share of the load until it serves
        for load, seconds in ((25, 120), (80, 60), (40, 200), (5, 700)):
            service.bear(load, seconds)
            seen.append(service.replicas)
        sizes.append(seen)
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) > 6 > min(sizes[0])


def test_the_bounds_of_a_service_hold_for_its_goal(cluster: Any) -> None:
    service = Service(cluster, mode="Standard")
    service.apply(minReplicas=2, maxReplicas=4)
    assert service.replicas == 2
    service.bear(90, 200)
    assert service.replicas == 4
    service.apply(minReplicas=2, maxReplicas=0)
    service.bear(90, 60)
    assert service.replicas > 9, "without maxReplicas there is no limit, as in the other mode"


def test_a_goal_that_comes_and_goes_changes_who_sizes_and_no_pod(cluster: Any) -> None:
    service = Service(cluster, mode="Standard")
    service.bear(60, 300)
    there, template = service.replicas, cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")].spec
    del service.said[GOAL]
    service.apply()
    assert cluster.store.objects[HPA].spec["maxReplicas"] == 50
    assert service.replicas == there
    assert service.condition()[:2] == ("False", "NoGoal")
    assert (
        cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")].spec["template"] == template["template"]
    )
    service.said[GOAL] = "queue wait <= 2s"
    service.apply()
    assert HPA not in cluster.store.objects


@pytest.mark.parametrize("scaled_by", ["external", "none"])
def test_a_goal_of_a_service_that_others_size_is_told_to_have_no_effect(cluster: Any, scaled_by: str) -> None:
    service = Service(cluster, mode="Standard", start=2)
    service.said[CLASS] = scaled_by
    service.apply(minReplicas=3)
    service.bear(90, 60)
    status, reason, message = service.condition()
    assert (status, reason, service.replicas) == ("False", "NotScaledHere", 3 if scaled_by == "none" else 1)
    assert GOAL in message
    assert CLASS in message


@pytest.mark.parametrize("mode", ["Serverless", "Standard"])
def test_who_has_a_goal_and_no_samples_is_told_so(cluster: Any, mode: str) -> None:
    service = Service(cluster, mode=mode, start=2)
    service.apply(minReplicas=2)
    service._live()
    cluster.advance(10)
    assert service.condition()[:2] == ("Unknown", "NoSamples")
    assert "inference_gateway" in service.condition()[2]
    service.bear(15, 20)
    assert service.condition()[0] == "True"
    cluster.advance(120)
    assert service.condition()[:2] == ("Unknown", "SamplesStale")


def test_what_a_goal_goes_by_does_not_add_up(cluster: Any) -> None:
    """An hour of samples is remembered in as much as five minutes are."""
    service = Service(cluster, mode="Standard", start=2)
    for load in range(150):
        service.bear(load % 7, 2)
    early = len(cluster.memory["serving/default/m"])
    for load in range(1800):
        service.bear(load % 7, 2)
    assert len(cluster.memory["serving/default/m"]) < 2 * early + 4000
