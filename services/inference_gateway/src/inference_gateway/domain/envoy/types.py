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


def from_file(path: str) -> Manifest:
    """A source of configuration: the file ``path``, read again whenever another one is moved to its place."""
    return {"path_config_source": {"path": path}, "resource_api_version": "V3"}


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
