"""What is in a pod's volumes, and where its containers see them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kube import Manifest
from kube.environment import Missing, Sources, pod_field, resource_field

DEFAULT_MODE = 0o644


class Origin(Enum):
    """Where the content of a volume comes from."""

    EMPTY = "empty"
    """A folder of the pod's own, gone with it."""
    FILES = "files"
    """Files made from ConfigMaps, Secrets and the pod itself; they follow changes."""
    CLAIM = "claim"
    """A folder that outlives the pod, by the claim's name."""
    HOST = "host"
    """A folder or file of the machine."""


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """One file of a volume: its path inside of it."""

    path: str
    content: bytes
    mode: int = DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume of a pod. ``location`` is the host's path or the claim's name."""

    name: str
    origin: Origin
    location: str = ""
    files: tuple[VolumeFile, ...] = ()
    missing: tuple[Missing, ...] = ()
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume as one container sees it."""

    volume: str
    path: str
    sub_path: str = ""
    read_only: bool = False


class UnsupportedVolume(ValueError):
    """A kind of volume that a node without Kubernetes has not."""


def volumes(pod: Manifest, sources: Sources) -> tuple[Volume, ...]:
    """The volumes of ``pod`` with their content; raises UnsupportedVolume, naming the field."""
    given = enumerate((pod.get("spec") or {}).get("volumes") or ())
    return tuple(_volume(pod, volume, sources, f"spec.volumes[{index}]") for index, volume in given)


def mounts(container: Manifest) -> tuple[Mount, ...]:
    """The mounts of one container, outer paths first, so that an inner one is not hidden."""
    found = [
        Mount(
            volume=str(item.get("name") or ""),
            path="/" + str(item.get("mountPath") or "").strip("/"),
            sub_path=str(item.get("subPath") or "").strip("/"),
            read_only=bool(item.get("readOnly")),
        )
        for item in container.get("volumeMounts") or ()
    ]
    return tuple(sorted(found, key=lambda mount: (mount.path.count("/"), mount.path)))


def variable_name(volume: str) -> str:
    """The variable that names a volume's folder to a process that cannot see it at its mount path."""
    return "TIDEGATE_VOLUME_" + "".join(letter if letter.isalnum() else "_" for letter in volume).upper()


def _volume(pod: Manifest, volume: Manifest, sources: Sources, where: str) -> Volume:
    name = str(volume.get("name") or "")
    if "emptyDir" in volume:
        return Volume(name, Origin.EMPTY)
    if "hostPath" in volume:
        return Volume(name, Origin.HOST, str(volume["hostPath"].get("path") or "/"))
    if "persistentVolumeClaim" in volume:
        return Volume(name, Origin.CLAIM, str(volume["persistentVolumeClaim"].get("claimName") or ""))
    if "ephemeral" in volume:
        return Volume(name, Origin.EMPTY)
    content = _Content(pod, sources)
    if "projected" in volume:
        for source in volume["projected"].get("sources") or ():
            content.add(source, volume["projected"].get("defaultMode"))
    elif not content.add(volume, None):
        kind = ", ".join(sorted(volume.keys() - {"name"})) or "nothing"
        raise UnsupportedVolume(
            f"{where} ({name}) is of the kind {kind}; a node that runs processes has emptyDir, configMap, secret, "
            "downwardAPI, projected, hostPath and persistentVolumeClaim"
        )
    files = tuple(content.files[path] for path in sorted(content.files))
    return Volume(name, Origin.FILES, files=files, missing=tuple(content.missing), secret=content.secret)


@dataclass(slots=True)
class _Content:
    pod: Manifest
    sources: Sources
    files: dict[str, VolumeFile] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    secret: bool = False

    def add(self, source: Manifest, default_mode: int | None) -> bool:
        """Add what ``source`` holds; False when it is of no known kind."""
        if "configMap" in source:
            self._take("ConfigMap", self.sources.config_maps, source["configMap"], default_mode)
        elif "secret" in source:
            self.secret = True
            self._take("Secret", self.sources.secrets, source["secret"], default_mode)
        elif "downwardAPI" in source:
            self._take_fields(source["downwardAPI"], default_mode)
        else:  # of the other sources of a projected volume there are none here: no API server gives out tokens
            return "serviceAccountToken" in source or "clusterTrustBundle" in source
        return True

    def _take(
        self, kind: str, objects: Mapping[str, Mapping[str, Any]], given: Manifest, default_mode: int | None
    ) -> None:
        namespace = (self.pod.get("metadata") or {}).get("namespace") or "default"
        name = f"{namespace}/{given.get('secretName') or given.get('name') or ''}"
        data = objects.get(name)
        if data is None:
            if not given.get("optional"):
                self.missing.append(Missing(kind, name))
            return
        mode = given.get("defaultMode") or default_mode or DEFAULT_MODE
        for key, path, own_mode in _items(given.get("items"), data):
            if key in data:
                self.files[path] = VolumeFile(path, _bytes(data[key]), int(own_mode or mode))
            elif not given.get("optional"):
                self.missing.append(Missing(kind, name, key))

    def _take_fields(self, given: Manifest, default_mode: int | None) -> None:
        mode = given.get("defaultMode") or default_mode or DEFAULT_MODE
        for item in given.get("items") or ():
            path = _inside(str(item.get("path") or ""))
            if "fieldRef" in item:
                wanted = str(item["fieldRef"].get("fieldPath") or "")
                value = pod_field(self.pod, wanted)
            else:
                reference = item.get("resourceFieldRef") or {}
                wanted = str(reference.get("resource") or "")
                value = resource_field(self.pod, reference, "", self.sources.allocatable)
            if value is None:
                self.missing.append(Missing("Field", "the pod", wanted))
            else:
                self.files[path] = VolumeFile(path, value.encode(), int(item.get("mode") or mode))


def _items(items: Iterable[Manifest] | None, data: Mapping[str, Any]) -> list[tuple[str, str, int | None]]:
    if items is None:
        return [(key, _inside(key), None) for key in sorted(data)]
    return [(str(item.get("key")), _inside(str(item.get("path"))), item.get("mode")) for item in items]


def _inside(path: str) -> str:
    """A path that cannot leave its volume: admission refuses ``..``, and here it is dropped."""
    return "/".join(part for part in path.split("/") if part not in ("", ".", ".."))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
