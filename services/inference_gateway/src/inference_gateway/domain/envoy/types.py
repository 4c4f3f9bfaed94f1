"""Envoy's messages as plain data: what wraps them."""

from kube import Manifest

_TYPES = "type.googleapis.com/"
EXTENSIONS = "envoy.extensions"


def typed(kind: str, /, **fields: object) -> Manifest:
    """A message of the type ``kind`` where any may stand."""
    return {"@type": f"{_TYPES}{kind}", **fields}


def extension(name: str, kind: str, /, **fields: object) -> Manifest:
    """The extension ``name``, configured by a message of the type ``kind``."""
    return {"name": name, "typed_config": typed(kind, **fields)}


def seconds(amount: float) -> str:
    """A duration."""
    return f"{amount:g}s"


def asked_of(cluster: str) -> Manifest:
    """A source of configuration: ``cluster`` is asked by REST, and answers when there is something new.

    Files would do but for one thing: the proxy has an inotify instance for each that it reads, and a user may have 128 of them.
    """
    return {
        "resource_api_version": "V3",
        "api_config_source": {
            "api_type": "REST",
            "transport_api_version": "V3",
            "cluster_names": [cluster],
            "refresh_delay": "0.02s",
            "request_timeout": "120s",
        },
    }


def socket(path: str) -> Manifest:
    """The address of a socket in the file system."""
    return {"pipe": {"path": path}}


def address(host: str, port: int) -> Manifest:
    """The address of a socket in the network."""
    return {"socket_address": {"address": host, "port_value": port}}


def assignment(cluster: str, *addresses: Manifest) -> Manifest:
    """The endpoints of ``cluster``."""
    endpoints = [{"endpoint": {"address": one}} for one in addresses]
    return {"cluster_name": cluster, "endpoints": [{"lb_endpoints": endpoints}]}
