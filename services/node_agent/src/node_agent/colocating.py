"""Keeps a node to its rules: looks, decides, writes, and remembers what the next agent has to know."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kube import Manifest
from kube.node_evictions import Wish
from node_agent.close_look import CloseLook, programs_used
from node_agent.domain.colocation.adoption import left_behind
from node_agent.domain.colocation.bursts import any_raised
from node_agent.domain.colocation.core import Enforcement, enforce
from node_agent.domain.colocation.disturbances import Disturbance
from node_agent.domain.colocation.evictions import current
from node_agent.domain.colocation.groups import Group, Knobs
from node_agent.domain.colocation.machine import Machine, machine_of
from node_agent.domain.colocation.memory_protection import Watermark, watermarks
from node_agent.domain.colocation.network import not_kept
from node_agent.domain.colocation.node_slo import NO_RULES, node_slo
from node_agent.domain.colocation.pods import NodePod, sound_pod
from node_agent.domain.colocation.resctrl import NOTHING
from node_agent.domain.colocation.restoration import to_write
from node_agent.domain.colocation.situation import Situation
from node_agent.inventory.hardware import Hardware
from node_agent.kept_rules import KeptRules
from node_agent.layouts import Layout
from node_agent.ports import Assignment, Clock
from node_agent.runtime.cache_groups import CacheGroups
from node_agent.runtime.guard import GIVE_BACK_SECONDS
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.memory_reclaim import MemoryReclaim
from node_agent.runtime.network_classes import NetworkClasses
from node_agent.troubles import Trouble

_log = logging.getLogger(__name__)

ROUND_MS = 1_000
PEEK_MS = 200
"""How often it is looked whether online pods have begun to use more."""
JUMP_PERCENT = 5
"""Of the node: so much more than in the round before does not wait for the next one."""
STALE_MS = 10_000
RECLAIM_ROUNDS = 5
LOOK_AGAIN_ROUNDS = 10
"""After so many rounds all files are read, to see whether somebody else has written there."""
AWAITED_SECONDS = 1.0
"""So long a container runtime waits for what is decided about a pod that was not assigned yet; it would wait two."""


class Colocation:
    """The rules of one node and what is in force of them."""

    def __init__(
        self,
        hardware: Hardware,
        layout: Layout,
        look: CloseLook,
        writer: KnobWriter,
        folder: Path,
        clock: Clock,
        wish: Callable[[tuple[Wish, ...]], None],
    ) -> None:
        """``folder`` is where what outlives the agent is kept; ``wish`` hears which pods have to leave when that changes."""
        self._hardware, self._layout, self._look, self._writer = hardware, layout, look, writer
        self._clock, self._wish = clock, wish
        self._files = KeptRules(folder, writer.raw)
        self._caches, self._reclaim = CacheGroups(self._tasks), MemoryReclaim(writer.files)
        self._network = NetworkClasses(layout.folder, hardware.uplink)
        self._marks: Mapping[Group, Watermark] = {}
        self._slo, self._machine = NO_RULES, Machine({}, {}, ())
        self._pods: dict[str, NodePod] = {}
        self._fresh = True
        """Whether the newest decision is about what was assigned last."""
        self._news = asyncio.Event()
        self._kept, self._written = self._files.load()
        self._assigned = self._over = False
        self._looked_back = False
        """Whether it was seen what a predecessor has left."""
        self._wished: tuple[Wish, ...] = ()
        self._rounds = 0
        self._undecided, self._unread = Trouble("rules_not_decided"), Trouble("use_not_read")
        self._online: tuple[int, int] | None = None
        self._network_told = ""
        self._known_milli = 0
        """What online pods used by the newest sample."""
        self._told: frozenset[tuple[str, str, str]] = frozenset()
        self.newest: Enforcement | None = None

    @property
    def busy(self) -> bool:
        """Whether something has to be looked at as time passes, and not only when something changes."""
        slo = self._slo
        asked = slo.thresholds.enabled or bool(slo.host_applications) or bool(self._marks)
        return asked or any_raised(self._pods.values(), slo.burst)

    def programs(self) -> list[Manifest]:
        """What programs of the node that are no pods used last, as a NodeMetric tells it."""
        return programs_used(self._slo, self._look.sample)

    def assign(self, assignment: Assignment) -> None:
        """Take the pods and the rules."""
        self._slo = node_slo(assignment.slo)
        hardware = self._hardware
        self._machine = machine_of(
            assignment.node_object, hardware.processors, hardware.disks, hardware.cache, hardware.uplink
        )
        self._pods = {pod.uid: pod for manifest in assignment.pods if (pod := sound_pod(manifest)) is not None}
        self._note_network()
        self._marks = watermarks(self._slo, self._machine, self._pods.values())
        self._fresh, self._assigned = False, not self._over
        self._news.set()

    def _note_network(self) -> None:
        """Say once, for as long as they are asked for, why classes of pods have no parts of the network here."""
        missing = not_kept(self._slo, self._machine)
        if missing and missing != self._network_told:
            _log.warning("network_not_shared_out", extra={"missing": missing})
        self._network_told = missing

    def put_in_force(self, uid: str) -> None:
        """A pod's groups were just made, and nothing runs in them: what is decided about them holds from the start."""
        if self._over:
            return
        if not self._fresh:
            self._fresh = True  # what goes wrong leaves in force what is, until something changes, or the next round
            with self._undecided.contained():
                self._decide()
        groups = {group: files for group, files in self._written.items() if group.pod == uid}
        for folder, files in self._texts(groups).items():
            self._writer.put(folder, files)

    async def files_of(self, uid: str, container: str) -> Mapping[str, str]:
        """What is decided about a container that is about to be made: its pod may be assigned only a moment later."""
        until = asyncio.get_running_loop().time() + AWAITED_SECONDS
        while uid not in self._pods and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(AWAITED_SECONDS / 20)
        pod = self._pods.get(uid)
        if pod is None:
            return {}
        self.put_in_force(uid)
        return self._written.get(pod.group.of(container), {})

    async def run(self) -> None:
        """Keep the node to its rules until cancelled, from the first assignment on."""
        loop = asyncio.get_running_loop()  # whose time does not jump
        due, decided = 0.0, loop.time()
        while True:
            await self._wait(due - loop.time())
            now = loop.time()
            if self._assigned and (now >= due or not self._fresh):
                due, self._fresh = now + ROUND_MS / 1000, True
                with self._undecided.contained():
                    self.round()
                    decided = now
            elif self._assigned:
                with self._unread.contained():
                    due = min(due, now + PEEK_MS / 1000) if self.peek() else due
            if now - decided >= GIVE_BACK_SECONDS:  # nobody says what is to hold, or it cannot be found out
                decided, self._rounds = now, 0
                self._files.give_back()
                self._network.forget()

    def give_back(self) -> None:
        """End in order: everything is as it was before there were rules."""
        self._assigned, self._over = False, True
        self._writer.write(self._first())
        self._caches.write(NOTHING)
        self._network.write(None)
        self._files.forget()

    async def _wait(self, seconds: float) -> None:
        """Until there is news, or the next look is due. What nobody but us decides is looked at now and then only."""
        if self.busy:
            seconds = min(seconds, PEEK_MS / 1000)
        elif self._holds:
            seconds += LOOK_AGAIN_ROUNDS * ROUND_MS / 1000
        try:
            async with asyncio.timeout(max(0.0, seconds) if self.busy or self._holds else None):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    @property
    def _holds(self) -> bool:
        """Whether something is in force that nobody else may have changed."""
        return bool(self._written) or (self.newest is not None and self.newest.network is not None)

    def round(self) -> None:
        """Look, decide and write, once."""
        now = self._clock()
        if self.busy:
            with self._unread.contained():  # the last sample stays, and soon is too old to tell anything
                self._look.look(self._pods, self._slo, now)
                sample = self._look.sample
                online = [uid for uid, pod in self._pods.items() if pod.online]
                self._known_milli = sum(sample.of(uid).cpu_milli for uid in online) if sample is not None else 0
        done = self._decide()
        self._rounds += 1
        look = not self.busy or self._rounds % LOOK_AGAIN_ROUNDS == 1
        self._writer.write(self._texts(self._written), look)
        self._caches.write(done.caches)
        self._network.start(done.network, look)
        if self._marks and self._rounds % RECLAIM_ROUNDS == 0:
            found = ((self._layout.folder(group), mark) for group, mark in self._marks.items())
            self._reclaim.start({folder: mark for folder, mark in found if folder is not None})
        self._tell(done.disturbances)
        wished = current(done.kept.asked, now)
        if wished != self._wished:
            self._wished = wished
            self._wish(wished)

    def _decide(self) -> Enforcement:
        """Decide, and keep what is to be written before it is: whoever dies in the midst of it is followed by one who knows."""
        if not self._looked_back:
            self._looked_back = True
            self._look_back()
        situation = Situation(self._clock(), self._slo, self._machine, self._pods, self._look.sample, STALE_MS)
        done = enforce(situation, self._kept)
        self._kept, self.newest = done.kept, done
        self._written = to_write(done.knobs, self._written, self._pods, self._machine)
        self._files.save(self._kept, self._written, self._first, self._network.undo(done.network), situation.now)
        return done

    def _look_back(self) -> None:
        """Take as written what a predecessor left that nobody remembers."""

        def stands(group: Group, name: str) -> str | None:
            folder = self._layout.folder(group)
            return None if folder is None else self._writer.says(folder, name)

        for group, files in left_behind(stands, self._pods, self._machine, self._layout.own).items():
            self._written = {**self._written, group: {**files, **self._written.get(group, {})}}

    def _first(self) -> dict[str, dict[str, str]]:
        """What stands, where it is held by rules now, when it is held by none."""
        return self._texts(to_write({}, self._written, self._pods, self._machine))

    def _tasks(self, uid: str) -> Iterable[int]:
        """The processes of a pod."""
        pod = self._pods.get(uid)
        folders = [self._layout.folder(pod.group.of(one.name)) for one in pod.containers] if pod is not None else []
        return (task for folder in folders if folder is not None for task in self._writer.tasks(folder))

    def _texts(self, knobs: Knobs) -> dict[str, dict[str, str]]:
        found = ((self._layout.folder(group), files) for group, files in knobs.items())
        return {folder: dict(files) for folder, files in found if folder is not None}

    def peek(self) -> bool:
        """Whether online pods use much more than at the round before. The next look then begins here, so that it sees it all."""
        if not self._slo.thresholds.enabled:
            return False
        now, used = self._clock(), self._look.online_ns()
        before, self._online = self._online, None if used is None else (now, used)
        if before is None or used is None or now <= before[0] or self._look.sample is None:
            return False
        more = (used - before[1]) // ((now - before[0]) * 1000) - self._known_milli
        if more * 100 < self._machine.cpu_milli * JUMP_PERCENT:
            return False
        self._look.begin(self._pods, self._slo, now)
        return True

    def _tell(self, disturbances: tuple[Disturbance, ...]) -> None:
        """Say who disturbs whom, once for as long as it goes on."""
        told = frozenset((one.victim, one.culprit, one.kind) for one in disturbances)
        for one in disturbances:
            if (one.victim, one.culprit, one.kind) not in self._told:
                _log.warning("pod_disturbed", extra={"what": one.described(self._pods)})
        self._told = told

    @property
    def allowed_milli(self) -> int:
        """The CPU that best effort may use now, in milli-cores."""
        return self._kept.held.limit_milli(self._machine.cpu_milli)

    @property
    def network_classes(self) -> int:
        """How many classes of pods have their part of the uplink."""
        plan = self.newest.network if self.newest is not None else None
        return 0 if plan is None or self._network.missing else len(plan.classes) - 1

    @property
    def disturbed(self) -> int:
        """How many online pods best effort disturbed in the newest round."""
        return len({victim for victim, _, _ in self._told})

    @property
    def cycles_per_instruction(self) -> float:
        """Of online pods, on average, by the newest sample; 0 where they are not counted."""
        sample = self._look.sample
        known = [stall.cpi for stall in sample.stalls.values() if stall.cpi] if sample is not None else []
        return sum(known) / len(known) / 1000 if known else 0.0

    @property
    def asked_to_leave(self) -> int:
        """How many pods have to leave the node."""
        return len(self._wished)
