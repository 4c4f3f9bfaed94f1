"""What the machine lets the agent do to keep pods apart, found out by trying, and said in words."""

import json
import os
from dataclasses import dataclass

from node_agent.runtime.cgroups import Cgroups, find_cgroups
from node_agent.runtime.folders import DataFolder
from node_agent.runtime.launcher import Launcher
from node_agent.settings import AgentSettings

ANNOTATION = "tidegate.dev/isolation"


@dataclass(frozen=True, slots=True)
class Isolation:
    """What is in force on this node. ``why_…`` say why something is not."""

    root: bool
    """Whether pods run as users of their own."""
    namespaces: bool
    own_user: bool
    """Whether namespaces are made without root, by way of a user namespace."""
    cgroups: Cgroups
    why_no_namespaces: str = ""

    def described(self) -> dict[str, str]:
        """What is in force, for the node's annotation and the log."""
        limits = f"cgroup v{self.cgroups.version}: {', '.join(self.cgroups.controllers)}"
        mounts = "user namespace per container" if self.own_user else "mount namespace per container"
        return {
            "users": "a user of its own per pod" if self.root else "none: the agent is not root, pods run as its user",
            "limits": limits if self.cgroups.version else f"none: {self.cgroups.why}",
            "files": mounts if self.namespaces else f"none: {self.why_no_namespaces}; volumes are named by TIDEGATE_VOLUME_*",
            "names": "hosts file per pod" if self.namespaces else "peers are known to Python programs only",
        }  # fmt: skip

    def annotations(self) -> dict[str, str]:
        """The node annotation that says what is in force."""
        return {ANNOTATION: json.dumps(self.described(), sort_keys=True)}


async def find_isolation(settings: AgentSettings, data: DataFolder, launcher: Launcher) -> Isolation:
    """Try what the settings ask for."""
    root = os.geteuid() == 0
    cgroups = find_cgroups(settings.cgroup_parent) if settings.enforce else Cgroups(None, "switched off (enforce)")
    why = "switched off (isolate)"
    if settings.isolate:
        why = await launcher.try_namespaces(data.stage, own_user=not root)
    return Isolation(root, not why, not root and not why, cgroups, why)
