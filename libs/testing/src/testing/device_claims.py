"""Resource claims and the devices for them, on a toy cluster: anything that has ``put``, ``pods`` and ``store``."""

from typing import Any

from kube import Key, Manifest

CLAIM = "ResourceClaim.resource.k8s.io"
DRIVER = "gpu.example.com"


def dra(kind: str, name: str, spec: Manifest, **metadata: Any) -> Manifest:
    """An object of the API group of devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", **metadata} if kind == "ResourceClaim" else {"name": name},
        "spec": spec,
    }


def devices_on(toy: Any, node: str, *devices: Manifest, **more: Any) -> None:
    """The driver says which devices a node has."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices), **more}
    toy.put(dra("ResourceSlice", f"{node}-slice", spec))


def gpu(name: str, root: str = "a", **more: Any) -> Manifest:
    """A device of 40 GiB at a PCIe root."""
    return {"name": name, "attributes": {"root": {"string": root}}, "capacity": {"memory": {"value": "40Gi"}}, **more}


def gpu_class(toy: Any, name: str = "gpu", expression: str = "true") -> None:
    """A class of devices, all of them if no expression is given."""
    toy.put(dra("DeviceClass", name, {"selectors": [{"cel": {"expression": expression}}]}))


def claim(toy: Any, name: str, *requests: Manifest, owner: str = "", **devices: Any) -> None:
    """A claim, of a pod ``owner`` where one is named."""
    metadata = {}
    if owner:
        uid = toy.store.get(Key("Pod", "default", owner)).uid
        metadata = {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid, "controller": True}]
        }
    toy.put(dra("ResourceClaim", name, {"devices": {"requests": list(requests), **devices}}, **metadata))


def ask(name: str = "g", **exactly: Any) -> Manifest:
    """A request for one device, or as ``exactly`` says."""
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def pod(toy: Any, name: str, *claims: str, **parts: Any) -> None:
    """A pod that names these claims."""
    listed = [{"name": f"c{at}", "resourceClaimName": one} for at, one in enumerate(claims)]
    toy.pods(name, requests={"cpu": 1}, resourceClaims=listed, **parts)


def given_to(toy: Any, name: str) -> list[str]:
    """The devices that a claim has."""
    status = toy.store.get(Key(CLAIM, "default", name)).status
    return [one["device"] for one in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()]


def users(toy: Any, name: str) -> list[str]:
    """The pods for which a claim is reserved."""
    return [one["name"] for one in toy.store.get(Key(CLAIM, "default", name)).status.get("reservedFor") or ()]
