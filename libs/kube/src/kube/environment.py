"""What a container of a pod is given as its environment, resolved from the pod's manifest as a kubelet does.

Pure: ConfigMaps and Secrets are handed in. The order is Kubernetes': ``envFrom`` in the order given, then ``env``, later
names winning; ``$(NAME)`` in a value means a variable that was defined before it, ``$$(NAME)`` is the text itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kube.keys import Manifest
from resources import QuantityError, parse_amounts, parse_milli, parse_quantity

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_INDEXED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class Sources:
    """What references may point to, by ``namespace/name``; ``allocatable`` is the node's, for limits that are not set."""

    config_maps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference that leads nowhere: ``kind`` is ConfigMap, Secret or Field; ``key`` is "" when the whole object is missing."""

    kind: str
    name: str
    key: str = ""

    def __str__(self) -> str:
        if self.kind == "Field":
            return f"field {self.key!r} of {self.name} is not one that a variable can have"
        return f"{self.kind} {self.name} has no key {self.key!r}" if self.key else f"{self.kind} {self.name} not found"


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables of one container in the order of their definition, and what could not be resolved."""

    variables: dict[str, str]
    missing: tuple[Missing, ...] = ()


def containers(pod: Manifest) -> list[Manifest]:
    """All containers of ``pod``: init containers first, each group in its order."""
    spec = pod.get("spec") or {}
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def environment(
    pod: Manifest, container: str, sources: Sources | None = None, base: Mapping[str, str] | None = None
) -> Environment:
    """The environment of the container named ``container``; ``base`` is what it has before its own variables.

    Raises KeyError when the pod has no such container.
    """
    found = _named(pod, container)
    resolver = _Resolver(pod, sources or Sources(), dict(base or {}))
    for source in found.get("envFrom") or ():
        resolver.take_all(source)
    for variable in found.get("env") or ():
        resolver.take(variable, container)
    return Environment(resolver.variables, tuple(resolver.missing))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with every ``$(NAME)`` replaced that ``variables`` has; others stay as they are, ``$$`` is one ``$``."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def expand_all(texts: Sequence[Any], variables: Mapping[str, str]) -> list[str]:
    """A command or its arguments with their ``$(NAME)`` replaced."""
    return [expand(str(text), variables) for text in texts]


def pod_field(pod: Manifest, path: str) -> str | None:
    """The value of a ``fieldRef`` path of ``pod``; "" where the field is not set, None where there is no such field."""
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    indexed = _INDEXED.fullmatch(path)
    if indexed:
        return str((metadata.get(indexed[1]) or {}).get(indexed[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs: Mapping[str, Any] = metadata.get(path.partition(".")[2]) or {}
        return "\n".join(f'{name}="{_escape(str(value))}"' for name, value in sorted(pairs.items()))
    plain = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace") or "default",
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "spec.schedulerName": spec.get("schedulerName"),
        "status.podIP": status.get("podIP"),
        "status.podIPs": status.get("podIP"),
        "status.hostIP": status.get("hostIP"),
        "status.hostIPs": status.get("hostIP"),
    }
    return str(plain[path] or "") if path in plain else None


def resource_field(pod: Manifest, reference: Manifest, own: str, allocatable: Mapping[str, int]) -> str | None:
    """The value of a ``resourceFieldRef``, rounded up to whole divisors; ``own`` is the container that asks.

    A limit that is not set is the node's ``allocatable``. None where the reference names no resource of a container.
    """
    side, _, resource = str(reference.get("resource") or "").partition(".")
    if side not in ("limits", "requests"):
        return None
    try:
        container = _named(pod, str(reference.get("containerName") or own))
        amounts = parse_amounts((container.get("resources") or {}).get(side))
        scale = parse_milli if resource == "cpu" else parse_quantity
        divisor = scale(reference.get("divisor") or "1") or scale("1")
    except (KeyError, QuantityError):
        return None
    amount = amounts.get(resource) or (allocatable.get(resource, 0) if side == "limits" else 0)
    return str(-(-amount // divisor))


def secret_names(pod: Manifest) -> list[str]:
    """The names of the Secrets that the containers and volumes of ``pod`` refer to, sorted."""
    names: set[str] = set()
    for container in containers(pod):
        for source in container.get("envFrom") or ():
            names.add(str((source.get("secretRef") or {}).get("name") or ""))
        for variable in container.get("env") or ():
            names.add(str(((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name") or ""))
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        names.add(str((volume.get("secret") or {}).get("secretName") or ""))
        for source in (volume.get("projected") or {}).get("sources") or ():
            names.add(str((source.get("secret") or {}).get("name") or ""))
    return sorted(names - {""})


def _named(pod: Manifest, name: str) -> Manifest:
    for container in containers(pod):
        if container.get("name") == name:
            return container
    raise KeyError(f"the pod has no container {name!r}")


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass(slots=True)
class _Resolver:
    pod: Manifest
    sources: Sources
    variables: dict[str, str]
    missing: list[Missing] = field(default_factory=list)

    def take_all(self, source: Manifest) -> None:
        """Every key of a ConfigMap or Secret, under the source's prefix."""
        for kind, field_name in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            reference = source.get(field_name)
            if reference is None:
                continue
            name, data = self._object(kind, reference)
            if data is None:
                self._miss(kind, name, "", reference)
                continue
            for key, value in _texts(data):
                self.variables[f"{source.get('prefix') or ''}{key}"] = value

    def take(self, variable: Manifest, container: str) -> None:
        """One entry of ``env``."""
        name, origin = str(variable.get("name") or ""), variable.get("valueFrom")
        if origin:
            value = self._value_from(origin, container)
            if value is not None:
                self.variables[name] = value
        else:
            given = variable.get("value")
            self.variables[name] = expand("" if given is None else str(given), self.variables)

    def _value_from(self, origin: Manifest, container: str) -> str | None:
        if "fieldRef" in origin:
            path = str(origin["fieldRef"].get("fieldPath") or "")
            return self._known("Field", path, pod_field(self.pod, path))
        if "resourceFieldRef" in origin:
            reference = origin["resourceFieldRef"]
            value = resource_field(self.pod, reference, container, self.sources.allocatable)
            return self._known("Field", str(reference.get("resource") or ""), value)
        for kind, field_name in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
            if field_name in origin:
                return self._key_of(kind, origin[field_name])
        return self._known("Field", ", ".join(sorted(origin)), None)

    def _key_of(self, kind: str, reference: Manifest) -> str | None:
        name, data = self._object(kind, reference)
        key = str(reference.get("key") or "")
        value = dict(_texts(data)).get(key) if data is not None else None
        if value is None:
            self._miss(kind, name, "" if data is None else key, reference)
        return value

    def _known(self, kind: str, path: str, value: str | None) -> str | None:
        if value is None:
            self.missing.append(Missing(kind, "the pod", path))
        return value

    def _object(self, kind: str, reference: Manifest) -> tuple[str, Mapping[str, Any] | None]:
        namespace = (self.pod.get("metadata") or {}).get("namespace") or "default"
        name = f"{namespace}/{reference.get('name') or ''}"
        found: Mapping[str, Mapping[str, Any]] = (
            self.sources.config_maps if kind == "ConfigMap" else self.sources.secrets
        )
        return name, found.get(name)

    def _miss(self, kind: str, name: str, key: str, reference: Manifest) -> None:
        if not reference.get("optional"):
            self.missing.append(Missing(kind, name, key))


def _texts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        yield key, value.decode(errors="replace") if isinstance(value, bytes) else str(value)
