"""InferenceServices with a goal in the user's words, as the core sees them."""

from typing import Any

import pytest

from kube import Key, rfc3339

SERVICE = "InferenceService.serving.kserve.io"
GOAL = "tidegate.dev/target"
DEPLOYMENT = "m-predictor-00001-deployment"


class Service:
    """A service of replicas that answer ten requests at a time; requests take a second."""

    def __init__(self, cluster: Any, start: int = 60, goal: str = "queue wait <= 1s", **annotations: str) -> None:
        self.cluster, self.start, self.pods = cluster, start, dict[str, int]()
        said = {GOAL: goal, **{f"tidegate.dev/{name}": value for name, value in annotations.items()}}
        containers = [{"name": "kserve-container", "image": "model:1"}]
        predictor = {"containers": containers, "minReplicas": 0, "maxReplicas": 50, "containerConcurrency": 10}
        cluster.put(
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {"name": "m", "annotations": said},
                "spec": {"predictor": predictor},
            }
        )

    def bear(self, load: float, seconds: int, waiting: float = 0) -> None:
        """So many requests at a time for a while; the request path says so every two seconds, and pods start in the meantime."""
        for _ in range(seconds // 2):
            self.cluster.advance(2)
            self._live()
            self._say("rps", load)
            self._say("concurrency", load + waiting)

    @property
    def replicas(self) -> int:
        return int(self.cluster.replicas(DEPLOYMENT))

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
        found = self.cluster.store.objects[Key("Deployment.apps", "default", DEPLOYMENT)]
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
