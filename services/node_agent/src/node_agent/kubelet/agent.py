"""The agent beside a kubelet: it runs nothing; it measures, says what devices there are, and keeps the node to its rules."""

import asyncio
import logging
from collections.abc import Mapping

from node_agent.close_look import CloseLook
from node_agent.colocating import Colocation
from node_agent.domain.usage import NODE, Look, look, of_container, report_interval_ms, samples, with_only_containers
from node_agent.inventory.gpu_use import GpuUse
from node_agent.inventory.hardware import find_hardware
from node_agent.inventory.machine import Devices
from node_agent.inventory.processors import online_cpus
from node_agent.inventory.uplink import find_uplink
from node_agent.kubelet.kept_look import KeptLook
from node_agent.kubelet.pod_groups import PodGroup, PodGroups, consumptions
from node_agent.layouts import KubeletLayout
from node_agent.node_watch import WATCH_MS, NodeWatch, more_usage
from node_agent.ports import Assignment, Clock, Upstream
from node_agent.reporter import Reporter
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.machine_use import machine_use
from node_agent.runtime.use_files import UseFiles
from node_agent.settings import AgentSettings
from node_agent.troubles import Trouble

_log = logging.getLogger(__name__)

LONGEST_GAP = 3
"""In intervals: what was used on average over a longer one, while no agent ran, says nothing of now."""


class KubeletAgent:
    """One agent of one kubelet's node. ``devices`` are said with every report: whoever lost them has them again."""

    def __init__(
        self,
        settings: AgentSettings,
        groups: PodGroups,
        devices: Devices,
        kept: KeptLook,
        upstream: Upstream,
        clock: Clock,
    ) -> None:
        self.pods: dict[str, PodGroup] = {}
        self._unread, self._unkept = Trouble("use_not_measured"), Trouble("look_not_kept")
        self._unwatched = Trouble("node_not_watched")
        self._settings, self._groups, self._devices, self._kept, self._clock = settings, groups, devices, kept, clock
        self._reporter = Reporter(settings, upstream, lambda _: (None, False), lambda _: None)
        self._layout = KubeletLayout(groups)
        self._watch, self._gpus = NodeWatch(groups.whole), GpuUse()
        self._interval_ms = settings.usage_interval_ms
        self.colocation = self._find_colocation() if settings.enforce else None

    @property
    def settings(self) -> AgentSettings:
        return self._settings

    def assign(self, assignment: Assignment) -> None:
        """The pods of the node and its rules."""
        self._interval_ms = report_interval_ms(assignment.slo, self._settings.usage_interval_ms)
        self._layout.assign(assignment.pods)
        if self.colocation is not None:
            self.colocation.assign(assignment)

    async def run(self) -> None:
        """Measure and report until cancelled; the first report comes an interval after the last look of a predecessor."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reporter.run())
            tasks.create_task(self._look_at_node())
            if self.colocation is not None:
                tasks.create_task(self.colocation.run())
            self._reporter.inventory_changed(self._devices)
            before, looked_at = self._left(), 0
            if before is not None:
                looked_at = before.at
            while True:
                due = min(looked_at, self._clock()) + self._interval_ms
                await asyncio.sleep(max(0, due - self._clock()) / 1000)
                looked_at = self._clock()
                with self._unread.contained():
                    before = self._look(before)

    async def give_back(self) -> None:
        """End in order: no rule holds any more."""
        if self.colocation is not None:
            self.colocation.give_back()

    async def files_of(self, uid: str, container: str) -> Mapping[str, str]:
        """What is decided about a container that its runtime is about to make."""
        if self.colocation is None:
            return {}
        self._layout.refresh()  # the pod's own group is there by now
        return await self.colocation.files_of(uid, container)

    async def _look_at_node(self) -> None:
        while True:
            with self._unwatched.contained():
                self._watch.look(self._clock())
            await asyncio.sleep(WATCH_MS / 1000)

    def _find_colocation(self) -> Colocation:
        self._settings.data_dir.mkdir(parents=True, exist_ok=True)
        return Colocation(
            find_hardware(online_cpus(), uplink=find_uplink(self._groups.sorting)),
            self._layout,
            CloseLook(self._layout, UseFiles(self._groups.use_paths())),
            KnobWriter(self._groups.knobs()),
            self._settings.data_dir,
            self._clock,
            self._reporter.wish,
        )

    def _left(self) -> Look | None:
        """The last look of a predecessor, if it was not long ago."""
        left = self._kept.load()
        oldest = self._clock() - LONGEST_GAP * self._interval_ms
        return left if left is not None and left.at >= oldest else None

    def _look(self, before: Look | None) -> Look:
        """Look at all pods, and report what they used since ``before``."""
        self.pods = self._groups.find()
        self._layout.refresh()
        used = {NODE: machine_use(), **consumptions(self._groups, self.pods)}
        named = {uid: self._layout.containers(uid) for uid in self.pods}
        many = {
            of_container(uid, name): group for uid, own in named.items() if len(own) > 1 for name, group in own.items()
        }
        used |= consumptions(self._groups, many)
        now = self._clock()
        # A pod that was not there before used all of its time since.
        usage = samples(before, now, used, dict.fromkeys(used, before.at) if before is not None else {})
        seen = look(now, used)
        with self._unkept.contained():  # without it the next agent's first sample comes an interval later
            self._kept.save(seen)
        if usage:
            self._reporter.inventory_changed(self._devices)
            programs = self.colocation.programs() if self.colocation else []
            alone = {uid: next(iter(own)) for uid, own in named.items() if len(own) == 1}
            usage = with_only_containers(usage, alone)
            self._reporter.measured(usage, more_usage(self._watch.told(now), programs, self._gpus.devices()))
        _log.debug("looked", extra={"pods": len(self.pods), "at": now})
        return seen
