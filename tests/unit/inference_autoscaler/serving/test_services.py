"""InferenceServices over time: what they are made of, revisions, shares, runtimes, restarts."""

from typing import Any

import pytest

from inference_autoscaler.domain.serving.rollout import Rollout
from kube import Key

SERVICE = "InferenceService.serving.kserve.io"


def load(cluster: Any, value: Any) -> None:
    described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
    spec = {"describedObject": described, "metric": {"name": "concurrency"}, "timestamp": cluster.time()}
    if value is not None:
        spec["value"] = value
    cluster.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": "m"}, "spec": spec})


def size(cluster: Any, number: int = 1) -> int:
    return int(cluster.replicas(f"m-predictor-{number:05d}-deployment"))


def split(cluster: Any) -> dict[str, int]:
    status = cluster.store.objects[Key(SERVICE, "default", "m")].status
    return {one["revisionName"][-1]: one["percent"] for one in status["components"]["predictor"]["traffic"]}


def test_a_revision_follows_its_load(cluster: Any) -> None:
    cluster.serve()
    cluster.ready()
    cluster.advance(60)
    load(cluster, 38)
    cluster.advance(2)
    assert size(cluster) == 4
    assert cluster.condition("Ready", "m", SERVICE)[0] == "True"


def test_a_service_sleeps_and_its_first_request_wakes_it_at_once(cluster: Any) -> None:
    cluster.serve(minReplicas=0)
    cluster.ready()
    for _ in range(8):
        cluster.advance(30)
        load(cluster, 0)
    assert size(cluster) == 0
    cluster.ready()
    cluster.advance(6)
    assert cluster.core.deadline() is None, "who sleeps costs nothing"
    load(cluster, 35)
    assert size(cluster) == 4


def test_a_service_that_begins_asleep_is_woken_by_its_first_request(cluster: Any) -> None:
    """Its first revision has the requests though no pod of it ever served: they are held for it."""
    cluster.serve(minReplicas=0, more={"autoscaling.knative.dev/initial-scale": "0"})
    cluster.advance(10)
    assert (size(cluster), split(cluster)) == (0, {"1": 100})
    load(cluster, 35)
    assert size(cluster) == 4


def test_a_restart_in_a_burst_takes_nothing_away(cluster: Any) -> None:
    cluster.serve()
    cluster.ready()
    cluster.advance(100)
    load(cluster, 5)
    cluster.advance(6)
    load(cluster, 68)
    cluster.advance(2)
    assert size(cluster) == 7
    cluster.ready()
    load(cluster, 5)
    cluster.restart()
    cluster.advance(30)
    load(cluster, 5)
    cluster.advance(2)
    assert size(cluster) == 7
    for _ in range(4):
        cluster.advance(30)
        load(cluster, 5)
        cluster.ready()
    assert size(cluster) == 1


def test_another_image_is_another_revision_and_another_bound_is_not(cluster: Any) -> None:
    cluster.serve()
    cluster.ready()
    cluster.serve(minReplicas=3)
    assert size(cluster) == 3
    cluster.serve("model:2", minReplicas=3)
    assert size(cluster, 2) == 3 and split(cluster) == {"1": 100}
    cluster.ready("m-predictor-00002-deployment")
    assert split(cluster) == {"2": 100}
    cluster.advance(2)
    assert size(cluster, 1) == 0, "nothing is routed to it, so its minimum does not hold"


def test_the_load_is_shared_as_the_requests_are(cluster: Any) -> None:
    cluster.serve()
    cluster.ready()
    cluster.serve("model:2", canaryTrafficPercent=20)
    cluster.ready("m-predictor-00002-deployment")
    assert split(cluster) == {"1": 80, "2": 20}
    cluster.advance(60)
    load(cluster, 100)
    cluster.advance(2)
    assert (size(cluster, 1), size(cluster, 2)) == (8, 2)


def test_a_stable_revision_that_sleeps_beside_its_canary_wakes_by_its_part_of_the_load(cluster: Any) -> None:
    """It gets nothing while it sleeps and another serves, and is sized by what it is to get."""
    cluster.serve(minReplicas=0)
    cluster.ready()
    for _ in range(8):
        cluster.advance(30)
        load(cluster, 0)
    cluster.ready()
    cluster.serve("model:2", canaryTrafficPercent=20, minReplicas=0)
    cluster.advance(2)
    cluster.ready("m-predictor-00002-deployment")
    assert (size(cluster, 1), split(cluster)) == (0, {"2": 100})
    load(cluster, 100)
    cluster.advance(2)
    assert size(cluster, 1) > 0
    cluster.ready()
    assert split(cluster) == {"1": 80, "2": 20}


@pytest.mark.parametrize(
    ("newest", "is_ready", "share", "expected"),
    [
        ("m-2", False, 20, {"m-1": 100}),
        ("m-2", True, 20, {"m-1": 80, "m-2": 20}),
        ("m-2", True, 0, {"m-1": 100}),
        ("m-2", True, 100, {"m-2": 100}),
        ("m-2", True, None, {"m-2": 100}),
    ],
)
def test_shares(newest: str, is_ready: bool, share: int | None, expected: dict[str, int]) -> None:
    first = Rollout().next("m-1", True, 10, {"m-1"})
    assert first.split == {"m-1": 100}, "there is no other that could have the rest"
    assert first.next(newest, is_ready, share, {"m-1", "m-2"}).split == expected


def test_a_rolled_out_revision_can_be_taken_back_by_a_share(cluster: Any) -> None:
    done = Rollout().next("m-1", True, None, {"m-1"}).next("m-2", True, None, {"m-1", "m-2"})
    assert done.next("m-2", True, 10, {"m-1", "m-2"}).split == {"m-1": 90, "m-2": 10}
    assert Rollout.of(done.manifest("m-2")) == done


def test_standard_mode_keeps_three_objects_and_the_size_that_they_have(cluster: Any) -> None:
    cluster.serve(mode="RawDeployment", minReplicas=2, maxReplicas=6, scaleMetric="cpu", scaleTarget=50)
    made = cluster.store.objects[Key("HorizontalPodAutoscaler.autoscaling", "default", "m-predictor")]
    assert (made.spec["minReplicas"], made.spec["maxReplicas"]) == (2, 6)
    assert Key("Service", "default", "m-predictor") in cluster.store.objects
    cluster.put({**cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")].manifest()})
    scaled = cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")].manifest()
    cluster.put({**scaled, "spec": {**scaled["spec"], "replicas": 5}})
    cluster.serve("model:2", mode="RawDeployment", minReplicas=2, maxReplicas=6)
    after = cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")]
    assert after.spec["replicas"] == 5
    assert after.spec["template"]["spec"]["containers"][0]["image"] == "model:2"


def test_a_model_runs_in_the_runtime_that_fits_and_follows_it(cluster: Any) -> None:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "s3://a/b", "runtimeVersion": "v9"}
    cluster.serve(mode="RawDeployment", model=model)
    assert cluster.condition("Ready", "m", SERVICE) == ("False", "NoSupportingRuntime")
    runtime: Any = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {"name": "sk"},
        "spec": {
            "supportedModelFormats": [{"name": "sklearn", "version": "1", "autoSelect": True}],
            "containers": [
                {"name": "kserve-container", "image": "host:5000/server:v1", "env": [{"name": "A", "value": "1"}]}
            ],
        },
    }
    cluster.put(runtime)
    template = cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")].spec["template"]
    assert template["spec"]["containers"][0]["image"] == "host:5000/server:v9"
    assert template["metadata"]["annotations"]["internal.serving.kserve.io/storage-initializer-sourceuri"] == "s3://a/b"
    runtime["spec"]["containers"][0]["image"] = "other:v1"
    cluster.put(runtime)
    template = cluster.store.objects[Key("Deployment.apps", "default", "m-predictor")].spec["template"]
    assert template["spec"]["containers"][0]["image"] == "other:v9"
