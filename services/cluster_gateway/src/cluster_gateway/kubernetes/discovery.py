"""Which of our kinds a cluster has, under which version and path."""

from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.api import Answer, Api, Refused
from kube import Manifest
from kube.kinds import KINDS, KindInfo


@dataclass(frozen=True, slots=True)
class Served:
    """One kind as a cluster serves it. ``prefix`` is ``/api/v1`` or ``/apis/group/version``."""

    info: KindInfo
    prefix: str
    plural: str
    has_status: bool
    has_scale: bool = False

    @property
    def collection(self) -> str:
        """The path of all objects of the kind."""
        return f"{self.prefix}/{self.plural}"

    def path(self, namespace: str, name: str = "") -> str:
        """The path of one object, or of its namespace's objects."""
        place = f"/namespaces/{namespace}" if self.info.namespaced and namespace else ""
        return f"{self.prefix}{place}/{self.plural}" + (f"/{name}" if name else "")


async def discover(api: Api, wanted: frozenset[str]) -> dict[str, Served]:
    """Those of the kinds ``wanted`` (``Kind.group``) that the cluster has, by kind. Raises Unreachable, Refused."""
    groups = _good(await api.get("/apis")).get("groups") or []
    versions = {str(group["name"]): _versions(group) for group in groups} | {"": ("v1",)}
    found: dict[str, Served] = {}
    by_place: dict[str, Mapping[str, Served]] = {}
    for kind in sorted(wanted):
        info = KINDS[kind]
        for version in _order(info.version, versions.get(info.group, ())):
            prefix = f"/apis/{info.group}/{version}" if info.group else f"/api/{version}"
            if prefix not in by_place:
                by_place[prefix] = _read(prefix, _good(await api.get(prefix)))
            if kind in by_place[prefix]:
                found[kind] = by_place[prefix][kind]
                break
    return found


def _good(answer: Answer) -> Manifest:
    if not answer.ok:
        raise Refused(answer)
    return answer.body


def _versions(group: Manifest) -> tuple[str, ...]:
    return tuple(str(version["version"]) for version in group.get("versions") or ())


def _order(ours: str, served: tuple[str, ...]) -> tuple[str, ...]:
    """Our version first; where the cluster has only others, its own order."""
    return (ours, *(version for version in served if version != ours)) if ours in served else served


def _read(prefix: str, listing: Manifest) -> Mapping[str, Served]:
    group = prefix.split("/")[2] if prefix.startswith("/apis/") else ""
    resources = [item for item in listing.get("resources") or () if "watch" in (item.get("verbs") or ())]
    names = {str(item["name"]) for item in listing.get("resources") or ()}
    found = {}
    for item in resources:
        kind = f"{item['kind']}.{group}" if group else str(item["kind"])
        if "/" not in str(item["name"]) and kind in KINDS:
            plural = str(item["name"])
            found[kind] = Served(KINDS[kind], prefix, plural, f"{plural}/status" in names, f"{plural}/scale" in names)
    return found
