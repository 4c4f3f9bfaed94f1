"""How a model comes to its server: what is added to the pods, and who is let in to fetch it."""

from typing import Any

from inference_autoscaler.domain.serving.model_storage import Source, credentials, with_models
from kube import Manifest, Store, from_manifest

POD: Manifest = {"containers": [{"name": "kserve-container", "image": "i"}, {"name": "beside"}]}


def stored(*manifests: Manifest) -> Store:
    store = Store()
    for number, manifest in enumerate(manifests, 1):
        store.put(from_manifest(manifest, revision=number))
    return store


def thing(kind: str, name: str, annotations: dict[str, str] | None = None, **body: Any) -> Manifest:
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}


def test_a_model_is_fetched_before_its_server_starts_and_only_the_server_sees_it() -> None:
    made = with_models(
        POD, ("kserve-container",), (Source("s3://bucket/model"),), [{"name": "A", "value": "b"}], "fetches:1"
    )
    (fetching,) = made["initContainers"]
    assert (fetching["name"], fetching["args"]) == ("storage-initializer", ["s3://bucket/model", "/mnt/models"])
    assert fetching["env"] == [{"name": "A", "value": "b"}]
    volume = {"name": "kserve-provision-location", "mountPath": "/mnt/models"}
    assert fetching["volumeMounts"] == [volume]
    server, beside = made["containers"]
    assert server["volumeMounts"] == [{**volume, "readOnly": True}]
    assert "volumeMounts" not in beside
    assert made["volumes"] == [{"name": "kserve-provision-location", "emptyDir": {}}]
    assert "initContainers" not in POD


def test_a_model_on_a_claim_is_mounted_and_not_fetched() -> None:
    made = with_models(POD, ("kserve-container",), (Source("pvc://models/a/b"),), [], "fetches:1")
    assert "initContainers" not in made
    (volume,) = made["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    (mount,) = made["containers"][0]["volumeMounts"]
    assert (mount["mountPath"], mount["subPath"], mount["name"]) == ("/mnt/models", "a/b", volume["name"])


def test_the_root_of_a_claim_needs_no_path_inside() -> None:
    made = with_models(POD, ("kserve-container",), (Source("pvc://models"),), [], "fetches:1")
    assert "subPath" not in made["containers"][0]["volumeMounts"][0]


def test_several_models_share_the_innermost_folder_that_holds_them() -> None:
    sources = (Source("hf://a/b", "/mnt/models/base"), Source("hf://a/c", "/mnt/models/adapters/c"))
    made = with_models(POD, ("kserve-container",), sources, [], "fetches:1")
    assert made["initContainers"][0]["args"] == ["hf://a/b", "/mnt/models/base", "hf://a/c", "/mnt/models/adapters/c"]
    assert made["containers"][0]["volumeMounts"][0]["mountPath"] == "/mnt/models"


def test_pods_that_fetch_by_themselves_are_left_as_they_are() -> None:
    own = {**POD, "initContainers": [{"name": "storage-initializer"}]}
    assert with_models(own, ("kserve-container",), (Source("s3://b/m"),), [], "fetches:1") is own


def test_who_fetches_is_let_in_by_the_secrets_of_the_service_account() -> None:
    annotations = {
        "serving.kserve.io/s3-endpoint": "minio.local:9000",
        "serving.kserve.io/s3-usehttps": "0",
        "serving.kserve.io/s3-region": "eu-1",
        "serving.kserve.io/s3-verifyssl": "0",
    }
    store = stored(
        thing("ServiceAccount", "sa", secrets=[{"name": "s3"}, {"name": "hub"}, {"name": "gone"}]),
        thing("Secret", "s3", annotations, data={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}),
        thing("Secret", "hub", data={"HF_TOKEN": ""}),
    )
    found = {one["name"]: one for one in credentials("team", "sa", store)}
    assert found["AWS_ENDPOINT_URL"]["value"] == "http://minio.local:9000"
    assert (found["AWS_DEFAULT_REGION"]["value"], found["S3_VERIFY_SSL"]["value"]) == ("eu-1", "0")
    key = found["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]
    assert key == {"name": "s3", "key": "AWS_SECRET_ACCESS_KEY"}
    assert found["HF_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "hub"


def test_the_default_service_account_is_meant_where_none_is_named() -> None:
    store = stored(
        thing("ServiceAccount", "default", {"serving.kserve.io/s3-useanoncredential": "true"}),
    )
    assert credentials("team", "", store) == [{"name": "awsAnonymousCredential", "value": "true"}]
    assert credentials("team", "other", store) == []
