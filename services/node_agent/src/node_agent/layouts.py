"""Where the groups of decisions are on this machine: those of pods that the agent runs, and those of a kubelet's."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kube import Manifest
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.local_groups import tier_folder
from node_agent.domain.pod_cgroups import Driver, class_folders
from node_agent.kubelet.pod_groups import PodGroup, PodGroups


class Layout(Protocol):
    """Folders below the roots that files are read and written in."""

    own: bool
    """Whether the groups are the agent's own, and not a kubelet's."""

    def folder(self, group: Group) -> str | None:
        """The folder of a group; None where there is none, or none any more."""

    def program(self, group: str) -> str:
        """The folder of a program that is no pod, by its path below the mount."""


class LocalLayout:
    """Below the agent's own group; ``folders`` tells those of pods by uid. Online tiers are not kept apart."""

    own = True

    def __init__(self, folders: Callable[[], Mapping[str, str]]) -> None:
        self._folders = folders

    def folder(self, group: Group) -> str | None:
        """See ``Layout``."""
        if not group.pod:
            return tier_folder(group.tier)
        pod = self._folders().get(group.pod)
        return None if pod is None else f"{pod}/{group.container}" if group.container else pod

    def program(self, group: str) -> str:
        """See ``Layout``."""
        return f"../{group}"


class KubeletLayout:
    """Below the mounts of the machine, where a kubelet puts them. ``assign`` tells which containers have which names.

    The folders are looked for anew when a container is new, and now and then: looking costs as much as all else of a round.
    """

    own = False

    def __init__(self, groups: PodGroups) -> None:
        self._groups = groups
        self._found: dict[str, PodGroup] = {}
        self._containers: dict[tuple[str, str], str] = {}
        self._new = True

    def assign(self, pods: Iterable[Manifest]) -> None:
        """The pods of the node; where one is new, or a container of one, its folder is looked for."""
        before = self._containers
        self._containers = {
            (str(pod["metadata"]["uid"]), str(one["name"])): str(one["containerID"]).rpartition("//")[2]
            for pod in pods
            for listed in ("initContainerStatuses", "containerStatuses")
            for one in (pod.get("status") or {}).get(listed) or ()
        }
        self._new = self._new or before != self._containers

    def containers(self, uid: str) -> dict[str, PodGroup]:
        """The groups of a pod's containers by name, as far as they are known."""
        pod = self._found.get(uid)
        found = {} if pod is None else pod.containers
        return {
            name: PodGroup(pod.path / found[container], {})
            for (owner, name), container in self._containers.items()
            if pod is not None and owner == uid and container in found
        }

    def refresh(self) -> None:
        """Look for all folders."""
        self._found, self._new = self._groups.find(), False

    def folder(self, group: Group) -> str | None:
        """See ``Layout``."""
        if self._new:
            self.refresh()
        if not group.pod:
            driver = next((one.driver for one in self._found.values()), Driver.CGROUPFS)
            return str(class_folders(driver, self._groups.root)[list(Tier).index(group.tier)])
        pod = self._found.get(group.pod)
        if pod is None or not group.container:
            return None if pod is None else str(pod.path)
        found = pod.containers.get(self._containers.get((group.pod, group.container), ""))
        return None if found is None else f"{pod.path}/{found}"

    def program(self, group: str) -> str:
        """See ``Layout``."""
        return group
