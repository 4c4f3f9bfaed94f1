"""Where the groups of decisions are on this machine: those of pods that the agent runs, and those of a kubelet's."""

from collections.abc import Callable, Mapping
from typing import Protocol

from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.local_groups import tier_folder
from node_agent.domain.pod_cgroups import Driver, class_folders
from node_agent.kubelet.pod_groups import PodGroup


class Layout(Protocol):
    """Folders below the roots that files are read and written in."""

    def folder(self, group: Group) -> str | None:
        """The folder of a group; None where there is none, or none any more."""

    def program(self, group: str) -> str:
        """The folder of a program that is no pod, by its path below the mount."""


class LocalLayout:
    """Below the agent's own group; ``folders`` tells those of pods by uid. Online tiers are not kept apart."""

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
    """Below the mounts of the machine; ``groups`` are the pods' by uid, ``containers`` the ids of containers by uid and name."""

    def __init__(
        self,
        root: str,
        groups: Callable[[], Mapping[str, PodGroup]],
        containers: Callable[[], Mapping[tuple[str, str], str]],
    ) -> None:
        self._root, self._groups, self._containers = root, groups, containers

    def folder(self, group: Group) -> str | None:
        """See ``Layout``."""
        pods = self._groups()
        if not group.pod:
            driver = next((one.driver for one in pods.values()), Driver.CGROUPFS)
            return str(class_folders(driver, self._root)[list(Tier).index(group.tier)])
        pod = pods.get(group.pod)
        if pod is None or not group.container:
            return None if pod is None else str(pod.path)
        found = pod.containers.get(self._containers().get((group.pod, group.container), ""))
        return None if found is None else f"{pod.path}/{found}"

    def program(self, group: str) -> str:
        """See ``Layout``."""
        return group
