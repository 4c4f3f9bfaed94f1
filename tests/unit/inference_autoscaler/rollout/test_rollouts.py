"""Revisions on trial: steps, promotion, what takes them back, and what never does."""

from typing import Any

import pytest

from kube import Key

SERVICE = "InferenceService.serving.kserve.io"
STEPS = "20:1m,50:1m"


class Served:
    """An InferenceService whose requests are counted, as the gateway does."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.totals: dict[str, int] = {}

    def apply(
        self, image: str, plan: str = "canary", steps: str = STEPS, share: int | None = None, **said: str
    ) -> None:
        annotations = {
            "tidegate.dev/rollout": plan,
            "autoscaling.knative.dev/target-utilization-percentage": "100",
            **({"tidegate.dev/rollout-steps": steps} if steps else {}),
            **{f"tidegate.dev/rollout-{name}": value for name, value in said.items()},
        }
        predictor = {
            "minReplicas": 4,
            "scaleTarget": 10,
            "containers": [{"name": "kserve-container", "image": image}],
            **({"canaryTrafficPercent": share} if share is not None else {}),
        }
        self.cluster.put(
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {"name": "m", "annotations": annotations},
                "spec": {"predictor": predictor},
            }
        )

    def ready(self, number: int, pods: int | None = None) -> None:
        key = Key("Deployment.apps", "default", f"m-predictor-{number:05d}-deployment")
        found = self.cluster.store.objects[key]
        there = found.spec["replicas"] if pods is None else pods
        status = {"replicas": found.spec["replicas"], "availableReplicas": there}
        self.cluster.core.fold([self.cluster.store.put(found.changed(status=status))], self.cluster.now)
        self.cluster.look()

    def runs(self, number: int) -> None:
        """One of its pods has a node."""
        name = f"m-predictor-{number:05d}"
        metadata = {"name": f"{name}-x", "labels": {"app": f"isvc.{name}"}}
        self.cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n0"}})

    def answers(self, number: int, requests: int, errors: int = 0, slow: int = 0) -> None:
        """So many more requests were answered, of them ``slow`` in more than 100 ms."""
        revision = f"m-predictor-{number:05d}"
        for metric, labels, more in (
            ("revision_errors_total", {}, errors),
            ("revision_latency_bucket", {"le": "100"}, requests - slow),
            ("revision_requests_total", {}, requests),
        ):
            name = f"{revision}-{metric.replace('_', '-')}"
            self.totals[name] = self.totals.get(name, 0) + more
            self._put(name, metric, {"revision": revision, **labels}, self.totals[name])

    def _put(self, name: str, metric: str, labels: dict[str, str], value: int) -> None:
        described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
        spec = {
            "describedObject": described,
            "metric": {"name": metric, "labels": labels},
            "timestamp": self.cluster.time(),
            "value": value,
        }
        reading = {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": name}, "spec": spec}
        self.cluster.put(reading)

    def split(self) -> dict[int, int]:
        status = self.cluster.store.objects[Key(SERVICE, "default", "m")].status
        return {int(one["revisionName"][-5:]): one["percent"] for one in status["components"]["predictor"]["traffic"]}

    def size(self, number: int) -> int:
        return int(self.cluster.replicas(f"m-predictor-{number:05d}-deployment"))

    def condition(self) -> tuple[str, str]:
        found: tuple[str, str] = self.cluster.condition("RolledOut", "m", SERVICE)
        return found

    def words(self) -> str:
        listed = self.cluster.store.objects[Key(SERVICE, "default", "m")].status["conditions"]
        return str(next(one["message"] for one in listed if one["type"] == "RolledOut"))


@pytest.fixture
def served(cluster: Any) -> Served:
    found = Served(cluster)
    found.apply("model:1")
    found.ready(1)
    return found


def begin(served: Served, **said: Any) -> None:
    """The second revision is at its first step."""
    served.apply("model:2", **said)
    served.ready(2)


def test_a_revision_takes_its_steps_and_is_promoted(served: Served) -> None:
    assert served.split() == {1: 100}
    served.apply("model:2")
    assert (served.split(), served.condition()) == ({1: 100}, ("Unknown", "Starting"))
    assert (served.size(1), served.size(2)) == (4, 1), "a fifth of what the stable one has"
    served.ready(2)
    assert (served.split(), served.condition()) == ({1: 80, 2: 20}, ("Unknown", "StepTaken"))
    served.answers(1, 800, 4)
    served.answers(2, 200, 1)
    served.cluster.advance(62)
    assert (served.split(), served.size(2)) == ({1: 80, 2: 20}, 2), "it waits for the pods of the next step"
    served.ready(2)
    assert served.split() == {1: 50, 2: 50}
    served.answers(1, 500, 2)
    served.answers(2, 500, 2)
    served.cluster.advance(62)
    assert (served.split(), served.condition()) == ({2: 100}, ("True", "Promoted"))
    assert "nothing speaks against it" in served.words()
    served.cluster.advance(4)
    assert (served.size(1), served.size(2)) == (0, 4)


def test_errors_take_it_back_with_the_figures_and_it_stays_back(served: Served) -> None:
    begin(served)
    served.answers(1, 800, 4)
    served.answers(2, 200, 30)
    assert (served.split(), served.condition()) == ({1: 100}, ("False", "ErrorRateHigher"))
    assert "15.00 % (30 of 200) against 0.50 % (4 of 800)" in served.words()
    told = served.cluster.decisions[-1]
    assert (told.name, told.reason) == ("TrafficSplit", "ErrorRateHigher")
    served.cluster.advance(4)
    assert served.size(2) == 0, "nobody pays for it any longer"
    served.answers(2, 5_000)
    served.cluster.restart()
    served.cluster.advance(3_600)
    assert served.split() == {1: 100}
    served.apply("model:3")
    served.ready(3)
    assert served.split() == {1: 80, 3: 20}


def test_another_plan_is_another_try(served: Served) -> None:
    begin(served)
    served.answers(1, 800)
    served.answers(2, 200, 30)
    assert served.split() == {1: 100}
    served.apply("model:2", steps="10:1m")
    served.cluster.advance(2)
    served.ready(2)
    assert served.split() == {1: 90, 2: 10}


def test_slow_answers_take_it_back(served: Served) -> None:
    begin(served)
    served.answers(1, 800, slow=20)
    served.answers(2, 200, slow=40)
    assert (served.split(), served.condition()) == ({1: 100}, ("False", "LatencyHigher"))
    assert "slower than 100 ms: 20.00 % (40 of 200) against 2.50 % (20 of 800)" in served.words()


def test_nothing_is_said_on_too_few_requests(served: Served) -> None:
    begin(served)
    served.answers(1, 10_000)
    served.answers(2, 99, 99)
    served.cluster.advance(600)
    assert served.split() == {1: 80, 2: 20}
    assert "until each of the two has answered 100 requests" in served.words()
    served.answers(2, 1, 1)
    assert served.split() == {1: 100}


def test_a_plan_may_go_by_time_alone(served: Served) -> None:
    begin(served, requests="0")
    served.cluster.advance(64)
    served.ready(2)
    served.cluster.advance(64)
    assert served.split() == {2: 100}


def test_blue_green_switches_at_once_and_the_old_one_stays_ready_to_take_over(served: Served) -> None:
    served.answers(1, 1_000, 1)
    served.apply("model:2", "blue-green", steps="")
    served.ready(2, 3)
    served.answers(1, 1_000, 1)
    assert served.split() == {1: 100}, "three of four pods serve"
    served.ready(2)
    assert served.split() == {2: 100}
    served.cluster.advance(60)
    assert (served.size(1), served.size(2)) == (4, 4)
    served.answers(2, 1_000, 100)
    assert (served.split(), served.condition()) == ({1: 100}, ("False", "ErrorRateHigher"))


def test_a_revision_that_crashes_gets_nothing_at_once_and_is_taken_back_after_a_while(served: Served) -> None:
    begin(served)
    served.runs(2)
    served.ready(2, 0)
    assert (served.split(), served.condition()) == ({1: 100}, ("Unknown", "StepTaken"))
    served.cluster.advance(30)
    served.ready(2)
    assert served.split() == {1: 80, 2: 20}, "it came back in time"
    served.ready(2, 0)
    served.cluster.advance(64)
    assert (served.split(), served.condition()) == ({1: 100}, ("False", "RevisionCrashed"))
    served.ready(2)
    assert served.split() == {1: 100}


def test_one_that_never_becomes_ready_is_taken_back_and_one_without_room_waits(served: Served) -> None:
    served.apply("model:2")
    served.cluster.advance(1_200)
    assert served.condition() == ("Unknown", "Starting"), "no node has room for it: that is no failure of it"
    served.runs(2)
    served.cluster.advance(610)
    assert (served.split(), served.condition()) == ({1: 100}, ("False", "NeverReady"))
    assert served.size(2) == 0


def test_a_share_that_the_user_gives_is_guarded_and_never_promoted(served: Served) -> None:
    begin(served, share=30)
    served.answers(1, 800)
    served.answers(2, 200)
    served.cluster.advance(62)
    served.ready(2)
    assert served.split() == {1: 70, 2: 30}
    served.cluster.advance(36_000)
    assert served.split() == {1: 70, 2: 30}
    served.answers(1, 800)
    served.answers(2, 200, 50)
    assert served.split() == {1: 100}


def test_counters_that_begin_anew_are_no_answers_taken_back(served: Served) -> None:
    served.answers(1, 500)
    begin(served)
    served.answers(2, 90, 90)
    served.totals = {}
    served.answers(1, 400)
    served.answers(2, 30, 30)
    assert "(120 of 120) against 0.00 % (0 of 400)" in served.words()


def test_a_restart_in_every_step_changes_nothing(served: Served) -> None:
    begin(served)
    for _ in range(3):
        served.cluster.restart()
        served.answers(1, 400, 2)
        served.answers(2, 100)
        served.cluster.restart()
        served.cluster.advance(30)
        served.ready(2)
    assert served.split() == {1: 50, 2: 50}


def test_a_rollout_that_waits_for_requests_costs_nothing_else(served: Served) -> None:
    begin(served)
    served.cluster.advance(90)
    before = len(served.cluster.decisions)
    served.cluster.advance(600)
    assert len(served.cluster.decisions) == before
