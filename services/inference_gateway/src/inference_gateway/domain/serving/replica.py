"""A pod that answers requests: where, and which requests it belongs to."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kube import Manifest, Object
from kube.pods import is_finished, is_ready

APP = "app"
PREFIX = "isvc."
"""KServe's label of the pods of a component or a revision: ``app: isvc.<name>``."""
CONTAINERS = ("kserve-container", "transformer-container")
HTTP_PORT = 8080
AGENT_PORT = "agent-port"
"""KServe's name of its agent's port. What comes by gRPC goes to the server itself."""
_GRPC_PORTS = (8001, 9000, 8081)
"""Where Triton, KServe's runtime of it, and KServe's own server speak gRPC."""
_ARGUMENT = re.compile(r"^--(http|grpc)[-_]port(?:=(\d+))?$")

Pool = tuple[str, str]
"""A namespace, and the name of a component or a revision: all its replicas answer alike."""


class Replica(NamedTuple):
    """``address`` is the pod's own; ``http`` and ``grpc`` are ports."""

    pod: str
    address: str
    http: int
    grpc: int


def answers(metadata: Manifest) -> bool:
    """Whether a pod with ``metadata`` is a replica of an inference service."""
    return str((metadata.get("labels") or {}).get(APP) or "").startswith(PREFIX)


def pool_of(pod: Object) -> Pool | None:
    """Whose replica ``pod`` is; None if it is of no inference service."""
    return (pod.namespace, str(pod.labels[APP]).removeprefix(PREFIX)) if answers(pod.metadata) else None


def replica_of(pod: Object) -> Replica | None:
    """Where the pod answers; None while it does not, or is about to go."""
    address = str(pod.status.get("podIP") or "")
    if not address or pod.deleting or is_finished(pod) or not is_ready(pod):
        return None
    http, grpc = _ports(pod.spec)
    http = _agent_port(pod.spec) or http
    return Replica(pod.name, address, http, grpc)


def _ports(spec: Manifest) -> tuple[int, int]:
    """The ports for HTTP/1.1 and for gRPC: by their names, else as the server is told, else as servers have it."""
    container = _serving(spec.get("containers") or ())
    listed: list[Manifest] = container.get("ports") or []
    told = dict(_told((*(container.get("command") or ()), *(container.get("args") or ()))))
    grpc = next((int(one["containerPort"]) for one in listed if _is_grpc(one)), told.get("grpc"))
    http = next((int(one["containerPort"]) for one in listed if not _is_grpc(one)), told.get("http"))
    declared = [int(one["containerPort"]) for one in listed]
    grpc = grpc or next((port for port in _GRPC_PORTS if port in declared and port != http), None)
    return http or grpc or HTTP_PORT, grpc or http or HTTP_PORT


def _agent_port(spec: Manifest) -> int | None:
    """Where an agent stands before the server, which batches and logs what comes over HTTP/1.1; None without one."""
    ports = (one for container in spec.get("containers") or () for one in container.get("ports") or ())
    return next((int(one["containerPort"]) for one in ports if one.get("name") == AGENT_PORT), None)


def _serving(containers: Iterable[Manifest]) -> Manifest:
    listed = list(containers)
    return next((one for one in listed if one.get("name") in CONTAINERS), listed[0] if listed else {})


def _is_grpc(port: Manifest) -> bool:
    return str(port.get("name") or "").startswith(("grpc", "h2c"))


def _told(words: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The ports among the words of a command line: ``--grpc-port=9000``, or in two words."""
    asked = ""
    for word in map(str, words):
        if asked and word.isdigit():
            yield asked, int(word)
        found = _ARGUMENT.match(word)
        asked = found.group(1) if found else ""
        if found and found.group(2):
            yield asked, int(found.group(2))
