"""The node's agent: makes what runs on the node be what is assigned to it, and says how it goes."""

import asyncio
import fcntl
import json
import logging
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kube import Manifest
from kube.images import STOOD_IN_FOR
from node_agent.close_look import CloseLook
from node_agent.colocating import Colocation
from node_agent.domain import archive
from node_agent.domain.identity import free_user_id
from node_agent.domain.records import PodRecord, Stage
from node_agent.domain.usage import UsageSample, report_interval_ms
from node_agent.inventory.gpu_use import GpuUse
from node_agent.inventory.hardware import find_hardware
from node_agent.inventory.machine import Inventory, Reserve, find_inventory
from node_agent.inventory.processors import find_cpus
from node_agent.inventory.uplink import own_uplink
from node_agent.layouts import LocalLayout
from node_agent.measuring import UsageMeter
from node_agent.node import Node
from node_agent.node_watch import NodeWatch, more_usage
from node_agent.pod_worker import PodWorker
from node_agent.ports import Assignment, Clock, PodReport, Report, Upstream
from node_agent.reporter import Reporter
from node_agent.runtime.folders import DataFolder
from node_agent.runtime.isolation import Isolation, find_isolation
from node_agent.runtime.knob_writer import KnobWriter
from node_agent.runtime.launcher import Launcher
from node_agent.runtime.logs import prune, rotate
from node_agent.runtime.use_files import UseFiles
from node_agent.runtime.watch import ProcessWatch
from node_agent.settings import AgentSettings
from node_agent.troubles import Trouble

_log = logging.getLogger(__name__)


class AlreadyRunning(RuntimeError):
    """Another agent works on the same data folder."""


class Agent:
    """One agent of one node. ``run`` it in a task; tell it what to run with ``assign``, before or after."""

    def __init__(self, settings: AgentSettings, upstream: Upstream, clock: Clock) -> None:
        self.settings = settings
        self.isolation: Isolation | None = None
        self.inventory: Inventory | None = None
        self._upstream, self._clock = upstream, clock
        self._data = DataFolder(settings.data_dir.resolve())
        self._workers: dict[str, PodWorker] = {}
        self._assignment: Assignment | None = None
        self._said_gone: set[str] = set()
        self._reporter = Reporter(settings, upstream, self._look_up, self._stored)
        self._node: Node | None = None
        self.colocation: Colocation | None = None
        self._usage: tuple[UsageSample, ...] = ()
        self._interval_ms = settings.usage_interval_ms
        self._calm, self._found = asyncio.Event(), asyncio.Event()
        self._draining = False

    async def run(self) -> None:
        """Work until cancelled. Pods go on without the agent, and the next one finds them again.

        Raises AlreadyRunning, and InventoryError for a declared inventory that is wrong.
        """
        self._data.create()
        with self._locked():
            launcher, watch = Launcher(self._data.root), ProcessWatch()
            launcher.start()
            try:
                isolation = await find_isolation(self.settings, self._data, launcher)
                self.isolation = isolation
                _log.info("isolation_found", extra=isolation.described())
                async with asyncio.TaskGroup() as tasks:
                    await self._serve(tasks, launcher, watch, isolation)
            finally:
                for worker in self._workers.values():
                    worker.close()
                watch.close()
                launcher.close()
                self._node = None

    def alive(self) -> list[PodWorker]:
        """The pods of which something runs, or is to run yet."""
        return [worker for worker in self._workers.values() if worker.record.alive]

    def assign(self, assignment: Assignment) -> None:
        """Run what ``assignment`` names, and nothing else; the same one again changes nothing, an older one neither."""
        old = self._assignment
        if old is not None and assignment.revision < old.revision:
            return  # from a gateway that hung while its successor went on
        self._assignment = assignment
        self._interval_ms = report_interval_ms(assignment.slo, self.settings.usage_interval_ms)
        node = self._node
        if node is None:  # run() takes it up once it knows what is left from before
            return
        node.config_maps, node.hosts = assignment.config_maps, assignment.hosts
        if self.colocation is not None:
            self.colocation.assign(assignment)
        other_maps = old is None or old.config_maps != assignment.config_maps
        other_hosts = old is None or old.hosts != assignment.hosts
        pods = {str(manifest["metadata"]["uid"]): manifest for manifest in assignment.pods}
        for uid, manifest in pods.items():
            worker = self._workers.get(uid)
            if worker is None:
                # One that is over has ended here before this data folder was made: it is not run a second time.
                if self._draining or _is_over(manifest):
                    continue
                worker = self._workers[uid] = PodWorker(node, manifest, None, self._free_user_id())
                worker.begin()
            worker.update(manifest)
            if other_hosts:
                worker.refresh_names()
            if other_maps:
                worker.refresh_files()
        for uid, worker in list(self._workers.items()):
            if uid not in pods:
                worker.stop(worker.pod.grace_seconds)
        self._tidy()

    async def drain(self) -> None:
        """End every pod within its grace, and wait until nothing runs: for a node that goes for good.

        Pods that are assigned from now on are not begun; what a predecessor has left is found first, to be ended too.
        """
        self._draining = True
        await self._found.wait()
        for worker in list(self._workers.values()):
            worker.shut_down()
        while self.alive():
            self._calm.clear()
            await self._calm.wait()
        await self.give_back()
        if self.isolation is not None:
            self.isolation.cgroups.release()

    async def give_back(self) -> None:
        """End in order: no rule holds any more."""
        if self.colocation is not None:
            self.colocation.give_back()

    def log_file(self, uid: str, container: str) -> Path:
        """Where a container writes its log; raises LookupError when this node has no such log."""
        worker, folder = self._workers.get(uid), self._data.find_logs(uid)
        known = worker is not None and container in worker.record.containers
        if not known and (folder is None or not (folder / f"{container}.log").exists()):
            raise LookupError(f"node {self.settings.node} has no log of container {container!r} of pod {uid}")
        return (worker.preparation.log_folder if worker else folder or self._data.root) / f"{container}.log"

    def usage(self) -> tuple[UsageSample, ...]:
        """The newest usage samples."""
        return self._usage

    async def _serve(
        self, tasks: asyncio.TaskGroup, launcher: Launcher, watch: ProcessWatch, isolation: Isolation
    ) -> None:
        settings = self.settings
        self.inventory = self._find_inventory(isolation)
        self._reporter.inventory_changed(self.inventory)

        def run(work: Coroutine[Any, Any, None]) -> object:
            return tasks.create_task(work)

        self.colocation = self._find_colocation(isolation)
        if self.colocation is not None and self._assignment is not None:
            self.colocation.assign(self._assignment)
        self._node = Node(
            settings, self._data, launcher, watch, isolation, self._upstream, self._clock, run, self._pod_changed,
            self.colocation.put_in_force if self.colocation else lambda uid: None, self.inventory.allocatable,
        )  # fmt: skip
        self._find_pods(self._node)
        self._found.set()
        tasks.create_task(self._reporter.run())
        whole = NodeWatch(lambda: isolation.cgroups.consumption(""))
        tasks.create_task(self._keep_house(UsageMeter(isolation.cgroups), whole))
        if self.colocation is not None:
            tasks.create_task(self.colocation.run())
        if self._assignment is not None:
            self.assign(self._assignment)

    def _find_colocation(self, isolation: Isolation) -> Colocation | None:
        """Who keeps the node to its rules; None where there are no control groups to do it with."""
        hierarchy = isolation.cgroups.hierarchy
        paths = hierarchy.use_paths() if hierarchy is not None else None
        if hierarchy is None or paths is None:
            return None
        layout = LocalLayout(lambda: {worker.uid: worker.preparation.group for worker in self.alive()})
        return Colocation(
            find_hardware(find_cpus(), uplink=own_uplink(hierarchy.version, self.settings.cgroup_parent)),
            layout,
            CloseLook(layout, UseFiles(paths)),
            KnobWriter(hierarchy.knobs()),
            self._data.root,
            self._clock,
            self._reporter.wish,
        )

    def _find_pods(self, node: Node) -> None:
        """Take up the pods that a predecessor of this process has left."""
        if self._assignment is not None:
            node.config_maps, node.hosts = self._assignment.config_maps, self._assignment.hosts
        for uid, manifest in self._data.kept_pods().items():
            record = self._kept_record(uid)
            if record is not None:
                self._workers[uid] = PodWorker(node, manifest, record, record.user_id)
        rebooted = self._data.note_boot()
        for worker in list(self._workers.values()):
            worker.begin(rebooted)

    def _kept_record(self, uid: str) -> PodRecord | None:
        data = self._data.pod(uid).load("record.json")
        try:
            return archive.decode(data) if data else None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _log.warning("record_unreadable", extra={"uid": uid, "error": repr(error)})
            return None

    def _find_inventory(self, isolation: Isolation) -> Inventory:
        settings = self.settings
        reserve = Reserve(settings.reserved_cpu_milli, settings.reserved_memory_bytes, settings.max_pods)
        found = find_inventory(reserve, self._data.root, settings.inventory_file)
        labels = {"kubernetes.io/hostname": settings.node, **found.labels, **settings.labels}
        stood_in_for = sorted({image for one in settings.programs for image in one.images})
        images = {STOOD_IN_FOR: json.dumps(stood_in_for)} if stood_in_for else {}
        return replace(found, labels=labels, annotations={**found.annotations, **isolation.annotations(), **images})

    async def _keep_house(self, meter: UsageMeter, whole: NodeWatch) -> None:
        """Now and then: measure, and cut logs that have grown too long."""
        gpus = GpuUse()
        uncut, unread = Trouble("logs_not_cut"), Trouble("use_not_measured")
        with unread.contained():
            meter.measure((), self._clock())
        measured_at = self._clock()
        while True:
            await asyncio.sleep(self.settings.log_check_ms / 1000)
            running, now = self.alive(), self._clock()
            with uncut.contained():
                for worker in running:
                    for container in worker.record.containers:
                        rotate(worker.preparation.log_file(container), self.settings.log_bytes, self.settings.log_files)
            with unread.contained():
                whole.look(now)
                if not 0 <= now - measured_at < self._interval_ms:
                    measured_at = now
                    self._usage = meter.measure(running, now)
                    programs = self.colocation.programs() if self.colocation else []
                    self._reporter.measured(self._usage, more_usage(whole.told(now), programs, gpus.devices()))

    def _pod_changed(self, uid: str) -> None:
        self._reporter.pod_changed(uid)
        self._calm.set()

    def _look_up(self, uid: str) -> tuple[PodReport | None, bool]:
        worker = self._workers.get(uid)
        return (worker.report(), worker.record.gone) if worker else (None, False)

    def _stored(self, report: Report) -> None:
        self._said_gone.update(report.gone)
        self._tidy()

    def _tidy(self) -> None:
        """Forget the pods that are gone, known upstream to be gone, and assigned no more."""
        assigned = {str(pod["metadata"]["uid"]) for pod in self._assignment.pods} if self._assignment else None
        if assigned is None:
            return
        for uid in sorted(self._said_gone - assigned):
            worker = self._workers.pop(uid, None)
            if worker is not None:
                worker.forget()
            self._said_gone.discard(uid)
            prune(self._data.root / "logs", set(self._workers), self._clock() - self.settings.log_retention_ms)

    def _free_user_id(self) -> int:
        if self.isolation is None or not self.isolation.root:
            return -1
        taken = {worker.record.user_id for worker in self._workers.values()}
        return free_user_id(self.settings.user_ids, taken)

    def has_ended(self, uid: str, container: str) -> bool:
        """Whether the container will write no more."""
        worker = self._workers.get(uid)
        if worker is None or worker.record.gone:
            return True
        return worker.record.containers[container].stage is Stage.ENDED

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fd = os.open(self._data.root / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise AlreadyRunning(f"{self._data.root}: another agent works on this data folder") from None
        try:
            yield
        finally:
            os.close(fd)


def _is_over(manifest: Manifest) -> bool:
    phase = (manifest.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed") and "deletionTimestamp" not in manifest["metadata"]
