"""Samples as Kubernetes' metrics APIs tell them; what is not known is not there."""

import pytest

from admission.domain.metric_values import ALL_PODS, Asked, MetricIndex, NotKnown, custom, external, kind_of, resources
from admission.metrics_api.front_proxy import read_trust
from kube import Event, Manifest, Object, Store, from_manifest


class Samples:
    def __init__(self) -> None:
        self.store, self.index = Store(), MetricIndex()

    def put(self, name: str, metric: str, value: str | None, of: Manifest | None = None, **more: object) -> Object:
        labels = more.pop("labels", {})
        spec: Manifest = {"metric": {"name": metric, "labels": labels}, "timestamp": "2026-01-01T00:00:00.250Z", **more}
        spec |= {"value": value} if value is not None else {}
        spec |= {"describedObject": of} if of else {}
        manifest = {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": name}, "spec": spec}
        event = self.store.put(from_manifest(manifest))
        self.index.fold([event])
        return event.object

    def pod(self, name: str, **labels: str) -> Manifest:
        self.store.put(from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}}))
        return {"apiVersion": "v1", "kind": "Pod", "name": name}

    def ask(
        self, name: str, metric: str, kind: str = "Pod", version: str = "v1beta2", **selectors: Manifest
    ) -> Manifest:
        pods, selector = selectors.get("pods", {}), selectors.get("selector", {})
        return custom(self.index, self.store, Asked(version, "default", kind, name, metric, pods, selector))


@pytest.fixture
def samples() -> Samples:
    return Samples()


def test_the_pods_of_a_selector_tell_each_its_own(samples: Samples) -> None:
    samples.put("a", "queue", "3", samples.pod("a", app="web"), windowSeconds=30)
    samples.put("b", "queue", "500m", samples.pod("b", app="web"))
    samples.put("c", "queue", "7", samples.pod("c", app="other"))
    told = samples.ask(ALL_PODS, "queue", pods={"matchLabels": {"app": "web"}})
    assert told["apiVersion"] == "custom.metrics.k8s.io/v1beta2"
    assert [(one["describedObject"]["name"], one["value"]) for one in told["items"]] == [("a", "3"), ("b", "500m")]
    assert told["items"][0]["timestamp"] == "2026-01-01T00:00:00Z" and told["items"][0]["windowSeconds"] == 30


def test_the_older_version_names_the_same_otherwise(samples: Samples) -> None:
    samples.put("a", "queue", "3", samples.pod("a"), windowSeconds=30)
    (item,) = samples.ask("a", "queue", version="v1beta1")["items"]
    assert (item["metricName"], item["window"], "metric" in item) == ("queue", 30, False)


def test_a_sample_without_a_value_is_not_there_and_says_why(samples: Samples) -> None:
    samples.put("a", "queue", None, samples.pod("a"), message="http://x gives no answer")
    samples.put("q", "orders", None, message="NaN")
    with pytest.raises(NotKnown, match="http://x gives no answer"):
        samples.ask("a", "queue")
    with pytest.raises(NotKnown, match="NaN"):
        external(samples.index, "default", "orders", {})


def test_a_pod_that_is_gone_tells_nothing(samples: Samples) -> None:
    samples.put("a", "queue", "3", {"apiVersion": "v1", "kind": "Pod", "name": "gone"})
    with pytest.raises(NotKnown):
        samples.ask(ALL_PODS, "queue")


def test_samples_are_chosen_by_their_labels(samples: Samples) -> None:
    samples.put("a", "orders", "3", labels={"queue": "a"})
    samples.put("b", "orders", "4", labels={"queue": "b"})
    told = external(samples.index, "default", "orders", {"matchLabels": {"queue": "b"}})
    assert [(one["value"], one["metricLabels"]) for one in told["items"]] == [("4", {"queue": "b"})]
    assert len(external(samples.index, "default", "orders", {})["items"]) == 2
    with pytest.raises(NotKnown):
        external(samples.index, "other", "orders", {})


def test_objects_of_any_kind_tell_theirs(samples: Samples) -> None:
    samples.put("d", "hits", "9", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
    (item,) = samples.ask("web", "hits", kind=kind_of("deployments.apps"))["items"]
    assert item["describedObject"] == {
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        "apiVersion": "apps/v1",
    }
    with pytest.raises(NotKnown, match="no kind"):
        kind_of("things.example")


def test_what_is_known_is_listed_and_what_is_taken_back_is_not(samples: Samples) -> None:
    samples.put("a", "queue", "3", samples.pod("a"))
    kept = samples.put("q", "orders", "3")
    assert [one["name"] for one in resources(samples.index, "custom.metrics.k8s.io", "v1beta2")["resources"]] == [
        "pods/queue"
    ]
    assert [one["name"] for one in resources(samples.index, "external.metrics.k8s.io", "v1beta1")["resources"]] == [
        "orders"
    ]
    samples.index.fold([Event(kept, None)])
    assert resources(samples.index, "external.metrics.k8s.io", "v1beta1")["resources"] == []


CERTIFICATE = {"subject": ((("commonName", "front-proxy-client"),),)}
HEADERS = [("X-Remote-User", "u"), ("X-Remote-Group", "g"), ("X-Remote-Group", "h"), ("X-Remote-Extra-Scopes%2Fa", "s")]


def published(**more: str) -> Manifest:
    return {
        "data": {
            "requestheader-client-ca-file": "PEM",
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            **more,
        }
    }


def test_an_api_server_speaks_for_whom_its_headers_name() -> None:
    trust = read_trust(published())
    assert trust is not None
    identity = trust.identity(CERTIFICATE, HEADERS)
    assert identity is not None and (identity.user, list(identity.groups)) == ("u", ["g", "h"])
    assert list(identity.extra["scopes/a"].values) == ["s"]


def test_headers_of_anybody_else_say_nothing() -> None:
    """Whoever has no certificate of the authority, or one of another name, may write what he likes into headers."""
    trust = read_trust(published())
    assert trust is not None
    assert trust.identity(None, HEADERS) is None
    assert trust.identity({"subject": ((("commonName", "somebody"),),)}, HEADERS) is None
    assert trust.identity(CERTIFICATE, HEADERS[1:]) is None


def test_an_api_server_that_publishes_nothing_is_not_trusted() -> None:
    assert read_trust({}) is None
    assert read_trust(published(**{"requestheader-client-ca-file": ""})) is None
    assert read_trust(published(**{"requestheader-allowed-names": "nonsense"})) is None


def test_what_several_gateways_say_of_a_service_is_one_value(samples: Samples) -> None:
    """The sum of those that are there; one that said nothing for a minute is gone."""
    service = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}

    def say(source: str, value: str, time: str) -> None:
        metadata = {"name": f"m.rps.{source}", "labels": {"tidegate.dev/source": source}}
        spec = {"metric": {"name": "rps"}, "describedObject": service, "timestamp": time, "value": value}
        manifest = {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": metadata, "spec": spec}
        samples.index.fold([samples.store.put(from_manifest(manifest))])

    def told() -> list[str]:
        answer = samples.ask("m", "rps", kind="InferenceService.serving.kserve.io")
        return [one["value"] for one in answer["items"]]

    say("a", "2500m", "2026-01-01T00:00:10Z")
    assert told() == ["2500m"]
    say("b", "4", "2026-01-01T00:00:12Z")
    assert told() == ["6500m"]
    say("b", "4", "2026-01-01T00:01:11Z")
    assert told() == ["4"]
