"""A pod as the node reads it: its containers with their roles, hooks and probes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from kube import Manifest
from kube.pods import asked_probes

DEFAULT_GRACE_SECONDS = 30

# Names become the names of files and folders.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class InvalidPod(ValueError):
    """A manifest that no pod can be read from, with the field that is wrong."""


class Role(Enum):
    """When a container runs: to its end before the others, beside them from the start, or as the pod's work."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Handler:
    """An action on a container: exactly one of a command inside of it, an HTTP request, a connection, or a pause."""

    command: tuple[str, ...] = ()
    port: str = ""
    """A number, or the name of a port of the container."""
    host: str = ""
    path: str = ""
    """With a port: the path to GET; "" for a bare connection."""
    scheme: str = "HTTP"
    headers: tuple[tuple[str, str], ...] = ()
    sleep_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """A check that is repeated. Times are in milliseconds."""

    handler: Handler
    initial_delay_ms: int
    period_ms: int
    timeout_ms: int
    success_threshold: int
    failure_threshold: int
    grace_seconds: int | None


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod. ``restarts`` is Always, OnFailure or Never, as it holds for this container."""

    name: str
    role: Role
    field: str
    """Where it stands in the manifest: ``spec.containers[0]``."""
    restarts: str
    startup: Probe | None
    liveness: Probe | None
    readiness: Probe | None
    post_start: Handler | None
    pre_stop: Handler | None
    asked: tuple[tuple[str, Probe], ...] = ()
    """Probes that others want to know of, by the condition of the pod that tells of each."""

    def probes(self) -> tuple[tuple[str, Probe], ...]:
        """The probes that it has, by kind, and those that others asked for, by condition."""
        found = (("startup", self.startup), ("liveness", self.liveness), ("readiness", self.readiness))
        return (*((kind, probe) for kind, probe in found if probe is not None), *self.asked)


@dataclass(frozen=True, slots=True)
class Pod:
    """What the lifecycle of a pod depends on."""

    uid: str
    namespace: str
    name: str
    containers: tuple[Container, ...]
    restart_policy: str
    grace_seconds: int
    deadline_seconds: int | None

    def of_role(self, role: Role) -> tuple[Container, ...]:
        """Its containers of one role, in order."""
        return tuple(container for container in self.containers if container.role is role)


def read_pod(manifest: Manifest) -> Pod:
    """The pod that ``manifest`` describes; fields that are left out have Kubernetes' defaults.

    Raises InvalidPod, naming the field, for what admission should have refused.
    """
    try:
        for field, name in _names(manifest):
            if not _NAME.fullmatch(name):
                raise InvalidPod(f"{field}: {name!r} is not a name of letters, digits, '-', '_' and '.'")
        return _pod(manifest)
    except InvalidPod:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidPod(f"the manifest cannot be read: {error}") from error


def _names(manifest: Manifest) -> Iterator[tuple[str, str]]:
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    yield "metadata.uid", str(metadata.get("uid") or "")
    yield "metadata.name", str(metadata.get("name") or "")
    yield "metadata.namespace", str(metadata.get("namespace") or "default")
    for group in ("initContainers", "containers", "volumes"):
        for index, item in enumerate(spec.get(group) or ()):
            yield f"spec.{group}[{index}].name", str(item.get("name") or "")
            claim = (item.get("persistentVolumeClaim") or {}).get("claimName")
            if claim is not None:
                yield f"spec.volumes[{index}].persistentVolumeClaim.claimName", str(claim)


def _pod(manifest: Manifest) -> Pod:
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    policy = str(spec.get("restartPolicy") or "Always")
    read = [
        _container(container, f"spec.{group}[{index}]", group == "initContainers", policy)
        for group in ("initContainers", "containers")
        for index, container in enumerate(spec.get(group) or ())
    ]
    first = next((index for index, item in enumerate(read) if item.role is Role.MAIN), None)
    if first is not None:  # all containers have the pod's address, so one asks for all
        read[first] = replace(read[first], asked=_asked(metadata.get("annotations") or {}))
    grace, deadline = spec.get("terminationGracePeriodSeconds"), spec.get("activeDeadlineSeconds")
    return Pod(
        uid=str(metadata.get("uid") or ""),
        namespace=str(metadata.get("namespace") or "default"),
        name=str(metadata.get("name") or ""),
        containers=tuple(read),
        restart_policy=policy,
        grace_seconds=DEFAULT_GRACE_SECONDS if grace is None else int(grace),
        deadline_seconds=None if deadline is None else int(deadline),
    )


def _container(manifest: Manifest, field: str, before: bool, policy: str) -> Container:
    hooks = manifest.get("lifecycle") or {}
    sidecar = before and manifest.get("restartPolicy") == "Always"
    role = Role.SIDECAR if sidecar else Role.INIT if before else Role.MAIN
    # An init container that ended well never runs again, whatever the pod's policy says of its main containers.
    restarts = "Always" if sidecar else policy if role is Role.MAIN else "Never" if policy == "Never" else "OnFailure"
    probed = role is not Role.INIT
    return Container(
        name=str(manifest.get("name") or ""),
        role=role,
        field=field,
        restarts=restarts,
        startup=_probe(manifest.get("startupProbe")) if probed else None,
        liveness=_probe(manifest.get("livenessProbe")) if probed else None,
        readiness=_probe(manifest.get("readinessProbe")) if probed else None,
        post_start=_handler(hooks.get("postStart")),
        pre_stop=_handler(hooks.get("preStop")),
    )


def _asked(annotations: Manifest) -> tuple[tuple[str, Probe], ...]:
    """Requests to the pod's own address, every second; what is no such request is left out."""
    found = []
    for name, wanted in sorted(asked_probes(annotations).items()):
        probe = _probe({"periodSeconds": 1, **wanted})
        if probe is not None and probe.handler.port:
            found.append((name, replace(probe, handler=replace(probe.handler, host=""))))
    return tuple(found)


def _probe(manifest: Manifest | None) -> Probe | None:
    handler = _handler(manifest)
    if manifest is None or handler is None:
        return None

    def number(name: str, default: int) -> int:
        value = manifest.get(name)
        return default if value is None else int(value)

    grace = manifest.get("terminationGracePeriodSeconds")
    return Probe(
        handler=handler,
        initial_delay_ms=number("initialDelaySeconds", 0) * 1000,
        period_ms=max(1, number("periodSeconds", 10)) * 1000,
        timeout_ms=max(1, number("timeoutSeconds", 1)) * 1000,
        success_threshold=max(1, number("successThreshold", 1)),
        failure_threshold=max(1, number("failureThreshold", 3)),
        grace_seconds=None if grace is None else int(grace),
    )


def _handler(manifest: Manifest | None) -> Handler | None:
    if not manifest:
        return None
    if "exec" in manifest:
        return Handler(command=tuple(str(word) for word in manifest["exec"].get("command") or ()))
    if "httpGet" in manifest:
        get = manifest["httpGet"]
        headers = tuple((str(one.get("name")), str(one.get("value") or "")) for one in get.get("httpHeaders") or ())
        path, scheme = str(get.get("path") or "/"), str(get.get("scheme") or "HTTP").upper()
        return Handler(
            port=str(get.get("port")), host=str(get.get("host") or ""), path=path, scheme=scheme, headers=headers
        )
    for kind in ("tcpSocket", "grpc"):  # gRPC health is checked as far as a connection shows it
        if kind in manifest:
            return Handler(port=str(manifest[kind].get("port")), host=str(manifest[kind].get("host") or ""))
    if "sleep" in manifest:
        return Handler(sleep_seconds=int(manifest["sleep"].get("seconds") or 0))
    return None
