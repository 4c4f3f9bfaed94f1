"""Containers of a pod: defaults and rules of their names, resources, ports and variables."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.errors import FieldError
from admission.domain.quantities import check_amounts, is_whole, same_amount, sound_amounts
from admission.domain.shapes import AMOUNT, AMOUNTS, EITHER, TEXT, TEXTS, TRUTH, WHOLE, ListOf, entry, fields, one_of
from kube import Manifest
from resources import exceeds

RESOURCES = fields(requests=AMOUNTS, limits=AMOUNTS, claims=ListOf(fields(name=TEXT, request=TEXT)))
_KEY = fields(name=TEXT, key=TEXT, optional=TRUTH)
_SOURCE = fields(name=TEXT, optional=TRUTH)
_PROBE_TIMES = (
    "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold",
    "terminationGracePeriodSeconds",
)  # fmt: skip
_ACTION = {
    "exec": fields(command=TEXTS),
    "httpGet": fields(
        path=TEXT, port=EITHER, host=TEXT, scheme=TEXT, httpHeaders=ListOf(fields(name=TEXT, value=TEXT))
    ),
    "tcpSocket": fields(port=EITHER, host=TEXT),
    "grpc": fields(port=WHOLE, service=TEXT),
}
PROBE = fields(**_ACTION, **dict.fromkeys(_PROBE_TIMES, WHOLE))
CONTAINER = fields(
    name=TEXT,
    image=TEXT,
    command=TEXTS,
    args=TEXTS,
    workingDir=TEXT,
    env=ListOf(
        fields(
            name=TEXT,
            value=TEXT,
            valueFrom=fields(
                fieldRef=fields(fieldPath=TEXT),
                resourceFieldRef=fields(resource=TEXT, containerName=TEXT, divisor=AMOUNT),
                configMapKeyRef=_KEY,
                secretKeyRef=_KEY,
            ),
        )
    ),
    envFrom=ListOf(fields(prefix=TEXT, configMapRef=_SOURCE, secretRef=_SOURCE)),
    ports=ListOf(fields(name=TEXT, containerPort=WHOLE, hostPort=WHOLE, protocol=TEXT, hostIP=TEXT)),
    resources=RESOURCES,
    volumeMounts=ListOf(fields(name=TEXT, mountPath=TEXT, subPath=TEXT, readOnly=TRUTH)),
    restartPolicy=TEXT,
    imagePullPolicy=TEXT,
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    startupProbe=PROBE,
    lifecycle=fields(postStart=fields(**_ACTION), preStop=fields(**_ACTION)),
)
PORT_MAX = 65_535
_NEEDED = {
    "fieldRef": ("fieldPath",),
    "resourceFieldRef": ("resource",),
    "configMapKeyRef": ("name", "key"),
    "secretKeyRef": ("name", "key"),
}
"""The sources of a variable's value, and the fields that each has to give."""


def is_extended(resource: str) -> bool:
    """Whether ``resource`` is one that a node counts in whole pieces and never lends beyond what it has."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def default_container(container: Manifest, *, host_network: bool) -> None:
    """Limits fill requests, requests of extended resources fill limits; ports are TCP."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    filled = {**requests, **{name: value for name, value in limits.items() if name not in requests}}
    capped = {**limits, **{name: value for name, value in requests.items() if is_extended(name) and name not in limits}}
    if filled:
        resources["requests"] = filled
    if capped:
        resources["limits"] = capped
    if resources:
        container["resources"] = resources
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if host_network and port.get("containerPort"):
            port.setdefault("hostPort", port["containerPort"])


def check_containers(path: str, spec: Mapping[str, Any], volumes: Iterable[str]) -> Iterable[FieldError]:
    """All containers of a pod: there is one, their names differ, and each is sound."""
    main, init = spec.get("containers") or [], spec.get("initContainers") or []
    if not main:
        yield FieldError(f"{path}.containers", None, "a pod needs at least one container; add it")
    known, seen = set(volumes), set[str]()
    for list_name, group in (("initContainers", init), ("containers", main)):
        for index, container in enumerate(group):
            where, name = f"{path}.{list_name}[{index}]", container.get("name") or ""
            if name in seen and name:
                yield FieldError(f"{where}.name", name, "is the name of two containers; give each a name of its own")
            seen.add(name)
            yield from _check_container(where, container, known)
            policies = ("Always",) if list_name == "initContainers" else ("Always", "OnFailure", "Never")
            yield from one_of(f"{where}.restartPolicy", container.get("restartPolicy"), policies)


def _check_container(path: str, container: Mapping[str, Any], volumes: set[str]) -> Iterable[FieldError]:
    if container.get("name"):
        yield from names.dns_label(f"{path}.name", container["name"])
    else:
        yield FieldError(f"{path}.name", None, "is required; give the container a name")
    yield from check_resources(f"{path}.resources", container.get("resources") or {})
    yield from one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never"))
    for index, variable in enumerate(container.get("env") or []):
        yield from _check_variable(f"{path}.env[{index}]", variable)
    for index, port in enumerate(container.get("ports") or []):
        yield from _check_port(f"{path}.ports[{index}]", port)
    yield from _check_mounts(path, container.get("volumeMounts") or [], volumes)


def _check_variable(path: str, variable: Mapping[str, Any]) -> Iterable[FieldError]:
    yield from names.environment_name(f"{path}.name", variable.get("name") or "")
    if variable.get("value") and variable.get("valueFrom"):
        yield FieldError(f"{path}.valueFrom", variable["name"], "give a value or a valueFrom, not both")
    source = variable.get("valueFrom")
    if source is not None:
        yield from _check_source(f"{path}.valueFrom", source)


def _check_source(path: str, source: Mapping[str, Any]) -> Iterable[FieldError]:
    given = [kind for kind in _NEEDED if kind in source]
    if len(given) != 1:
        yield FieldError(path, ", ".join(given) or None, f"must hold exactly one of {', '.join(_NEEDED)}")
        return
    for field in _NEEDED[given[0]]:
        if not source[given[0]].get(field):
            yield FieldError(f"{path}.{given[0]}.{field}", None, "is required; say where the value comes from")


def _check_port(path: str, port: Mapping[str, Any]) -> Iterable[FieldError]:
    for name in ("containerPort", "hostPort"):
        number = port.get(name)
        if (name == "containerPort" or number) and not 0 < (number or 0) <= PORT_MAX:
            yield FieldError(f"{path}.{name}", number, f"must be a port from 1 to {PORT_MAX}")
    yield from one_of(f"{path}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))


def _check_mounts(path: str, mounts: Iterable[Mapping[str, Any]], volumes: set[str]) -> Iterable[FieldError]:
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        where, target = f"{path}.volumeMounts[{index}]", mount.get("mountPath") or ""
        if mount.get("name") not in volumes:
            yield FieldError(f"{where}.name", mount.get("name"), "names no volume of the pod; add it to volumes")
        if not target:
            yield FieldError(f"{where}.mountPath", None, "is required; say where the volume is mounted")
        elif target in taken:
            yield FieldError(f"{where}.mountPath", target, "is the path of two mounts; mount each at its own path")
        taken.add(target)


def check_resources(path: str, resources: Mapping[str, Any]) -> Iterable[FieldError]:
    """Quantities parse, requests stay within limits, and what is counted in pieces is whole on both sides."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, given in (("requests", requests), ("limits", limits)):
        yield from check_amounts(f"{path}.{name}", given)
        yield from _check_pieces(f"{path}.{name}", given)
    for name in exceeds(sound_amounts(requests), sound_amounts(limits)):
        yield FieldError(
            entry(f"{path}.requests", name),
            requests[name],
            f"must be at most the limit, {limits[name]}; raise the limit",
        )
    for name, value in requests.items():
        if is_extended(name) and not same_amount(value, limits.get(name, value)):
            yield FieldError(entry(f"{path}.limits", name), limits[name], f"must equal the request, {value}")


def _check_pieces(path: str, given: Mapping[str, Any]) -> Iterable[FieldError]:
    for name, value in given.items():
        counted = is_extended(name) or name.startswith(("kubernetes.io/batch-", "kubernetes.io/mid-"))
        if counted and not is_whole(value):
            yield FieldError(entry(path, name), value, "must be a whole number; this resource is counted in pieces")
