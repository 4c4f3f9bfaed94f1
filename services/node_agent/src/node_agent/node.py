"""What all pods of one node share while the agent runs."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.environment import Sources
from node_agent.ports import Clock, HostNames, Upstream
from node_agent.runtime.folders import DataFolder
from node_agent.runtime.isolation import Isolation
from node_agent.runtime.launcher import Launcher
from node_agent.runtime.watch import ProcessWatch
from node_agent.settings import AgentSettings


@dataclass(slots=True)
class Node:
    """The tools and the surroundings of the pods. ``config_maps`` and ``hosts`` are those of the newest assignment."""

    settings: AgentSettings
    data: DataFolder
    launcher: Launcher
    watch: ProcessWatch
    isolation: Isolation
    upstream: Upstream
    clock: Clock
    run: Callable[[Coroutine[Any, Any, None]], object]
    """Runs work beside what goes on; an exception in it ends the agent."""
    changed: Callable[[str], None]
    """Told the uid of a pod whose status has changed."""
    put_in_force: Callable[[str], None] = lambda uid: None
    """Told the uid of a pod whose control groups were made, before anything runs in them."""
    allocatable: Mapping[str, int] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hosts: Mapping[str, HostNames] = field(default_factory=dict)

    def sources(self, secrets: Mapping[str, Mapping[str, bytes]]) -> Sources:
        """What references in a pod may point to."""
        return Sources(self.config_maps, secrets, self.allocatable)
