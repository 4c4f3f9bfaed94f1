"""How a model comes to its server: a container that fetches it first, or a claim that holds it, as KServe has it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kube import Key, Manifest, Store

CONTAINER = "storage-initializer"
VOLUME, CLAIM_VOLUME = "kserve-provision-location", "kserve-pvc-source"
FOLDER = "/mnt/models"
_CLAIM = "pvc://"
_RESOURCES = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
_GROUP = "serving.kserve.io/"
_GIVEN = {
    "s3-region": "AWS_DEFAULT_REGION",
    "s3-verifyssl": "S3_VERIFY_SSL",
    "s3-usevirtualbucket": "S3_USER_VIRTUAL_BUCKET",
    "s3-useaccelerate": "S3_USE_ACCELERATE",
    "s3-useanoncredential": "awsAnonymousCredential",
    "s3-cabundle": "AWS_CA_BUNDLE",
}
"""Annotations of Secrets and ServiceAccounts, and the variables that they become."""
_KEYS = {
    "AWS_ACCESS_KEY_ID": ("AWS_ACCESS_KEY_ID", "awsAccessKeyID"),
    "AWS_SECRET_ACCESS_KEY": ("AWS_SECRET_ACCESS_KEY", "awsSecretAccessKey"),
    "HF_TOKEN": ("HF_TOKEN",),
    "HTTPS_HOST": ("https-host",),
    "HTTPS_HEADERS": ("headers",),
}
"""Variables, and the keys of Secrets that they may come from."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model at ``uri`` that its server finds in the folder ``path``."""

    uri: str
    path: str = FOLDER


def with_models(
    pod: Manifest, servers: Sequence[str], sources: Sequence[Source], variables: Sequence[Manifest], image: str
) -> Manifest:
    """The spec of pods whose containers named ``servers`` find the models of ``sources``.

    ``variables`` are what the fetching container is given to be let in (see ``credentials``). A pod that fetches by itself
    already is left as it is.
    """
    if any(one.get("name") == CONTAINER for one in pod.get("initContainers") or ()):
        return pod
    claimed = [one for one in sources if one.uri.startswith(_CLAIM)]
    fetched = [one for one in sources if not one.uri.startswith(_CLAIM)]
    mounts: list[Manifest] = []
    volumes: list[Manifest] = []
    for number, source in enumerate(claimed):
        name = f"{CLAIM_VOLUME}-{number}" if number else CLAIM_VOLUME
        claim, _, inner = source.uri.removeprefix(_CLAIM).partition("/")
        mount: Manifest = {"name": name, "mountPath": source.path, "readOnly": True}
        mounts.append({**mount, "subPath": inner} if inner else mount)
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    made = dict(pod)
    if fetched:
        parent = _common_folder([one.path for one in fetched])
        mounts.append({"name": VOLUME, "mountPath": parent, "readOnly": True})
        volumes.append({"name": VOLUME, "emptyDir": {}})
        made["initContainers"] = [*(pod.get("initContainers") or ()), _fetching(fetched, parent, variables, image)]
    made["volumes"] = [*(pod.get("volumes") or ()), *volumes]
    made["containers"] = [
        {**one, "volumeMounts": [*(one.get("volumeMounts") or ()), *mounts]} if one.get("name") in servers else one
        for one in pod.get("containers") or ()
    ]
    return made


def credentials(namespace: str, service_account: str, store: Store) -> list[Manifest]:
    """The variables that let a fetching container in, by the Secrets that its ServiceAccount names; their values stay there."""
    account = store.get(Key("ServiceAccount", namespace, service_account or "default"))
    if account is None:
        return []
    found: dict[str, Manifest] = {one["name"]: one for one in _told(account.annotations)}
    for reference in account.body.get("secrets") or ():
        secret = store.get(Key("Secret", namespace, str(reference.get("name") or "")))
        if secret is None:
            continue
        keys = secret.body.get("data") or {}
        for variable, names in _KEYS.items():
            for key in names:
                if key in keys:
                    value = {"secretKeyRef": {"name": secret.name, "key": key}}
                    found[variable] = {"name": variable, "valueFrom": value}
        found |= {one["name"]: one for one in _told(secret.annotations)}
    return list(found.values())


def _told(annotations: Mapping[str, str]) -> Iterator[Manifest]:
    endpoint = annotations.get(f"{_GROUP}s3-endpoint")
    if endpoint:
        scheme = "http" if annotations.get(f"{_GROUP}s3-usehttps") == "0" else "https"
        yield {"name": "S3_ENDPOINT", "value": endpoint}
        yield {"name": "AWS_ENDPOINT_URL", "value": f"{scheme}://{endpoint}"}
    for name, variable in _GIVEN.items():
        if f"{_GROUP}{name}" in annotations:
            yield {"name": variable, "value": annotations[f"{_GROUP}{name}"]}


def _fetching(sources: Sequence[Source], parent: str, variables: Sequence[Manifest], image: str) -> Manifest:
    container: Manifest = {
        "name": CONTAINER,
        "image": image,
        "args": [word for one in sources for word in (one.uri, one.path)],
        "resources": _RESOURCES,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": VOLUME, "mountPath": parent}],
    }
    return {**container, "env": list(variables)} if variables else container


def _common_folder(paths: Sequence[str]) -> str:
    """The innermost folder that holds all of ``paths``, or is the only one of them."""
    split = [path.strip("/").split("/") for path in paths]
    shared: list[str] = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/" + "/".join(shared)
