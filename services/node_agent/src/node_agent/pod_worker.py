"""One pod: carries out what its lifecycle decides, and tells the lifecycle what came of it."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

from kube import Manifest
from node_agent.attempts import NOT_BEFORE_NEWS, Attempts
from node_agent.commands import Commands
from node_agent.domain import archive, records, stopping
from node_agent.domain.containers import InvalidPod, Pod, read_pod
from node_agent.domain.lifecycle import Action, Plan, RestartRule, Verb, decide
from node_agent.domain.records import ContainerRecord, PodRecord, Stop
from node_agent.domain.status import pod_status, with_conditions
from node_agent.needs import NotYet, fetch_secrets
from node_agent.node import Node
from node_agent.pod_state import PodState
from node_agent.ports import PodReport
from node_agent.preparation import PodPreparation
from node_agent.runtime import ending

_log = logging.getLogger(__name__)

_SAVE_AGAIN_MS = 1_000
_VERSIONS = ("resourceVersion", "generation", "managedFields")


class PodWorker:
    """The pod of one uid on this node, from its assignment until it is forgotten."""

    def __init__(self, node: Node, manifest: Manifest, record: PodRecord | None, user_id: int) -> None:
        """``record`` is what a predecessor of the agent knew of the pod; ``user_id`` whom a new pod runs as."""
        self.uid = str(manifest["metadata"]["uid"])
        self.node = node
        pod, fresh = _read(manifest, user_id, node.clock())
        record = record or fresh
        folder = node.data.pod(self.uid)
        self.preparation = PodPreparation(node, pod, _own_part(manifest, node), folder, record.user_id)
        self._state = PodState(node, pod, record, folder, self.preparation, self.step)
        self._notes: dict[str, str] = {}
        self._attempts, self._commands = Attempts(self._state, self._notes), Commands(self._state)
        self._saved: dict[str, Any] | None = None
        self._kept = False
        self._timer: asyncio.TimerHandle | None = None
        self._status: Manifest = {}

    @property
    def record(self) -> PodRecord:
        """What is remembered of the pod."""
        return self._state.record

    @property
    def pod(self) -> Pod:
        """What the pod is to be."""
        return self._state.pod

    def begin(self, rebooted: bool = False) -> None:
        """Take the pod up: a new one, or one that a predecessor of this agent has left, maybe ``rebooted`` since."""
        for name, record in self.record.containers.items():
            if record.alive:
                self._attempts.find_again(name, rebooted)
        self.step()

    def update(self, manifest: Manifest) -> None:
        """The assignment names the pod again: with a deletion, or other labels and annotations."""
        manifest = _own_part(manifest, self.node)
        if manifest != self._state.manifest:
            self.preparation.manifest, self._kept = manifest, False
            self.refresh_files()
        metadata = manifest["metadata"]
        if "deletionTimestamp" in metadata:
            grace = metadata.get("deletionGracePeriodSeconds")
            self.stop(self.pod.grace_seconds if grace is None else int(grace))

    def refresh_names(self) -> None:
        """The names of the pod's peers may have changed."""
        if not self.record.alive:
            return
        try:
            self.preparation.write_hosts()
        except OSError as error:
            _log.warning("names_not_refreshed", extra={"uid": self.uid, "error": str(error)})
            asyncio.get_running_loop().call_later(_SAVE_AGAIN_MS / 1000, self.refresh_names)

    def refresh_files(self) -> None:
        """What the pod's volumes are made of may have changed, and what a container waits for may have come."""
        if self.record.alive and self.preparation.has_files():
            self.node.run(self._refresh_volumes())
        for name, record in self.record.containers.items():
            if record.retry_at == NOT_BEFORE_NEWS:
                self._state.set(name, replace(record, retry_at=0))
        self.step()

    def shut_down(self) -> None:
        """End it because the node ends, within its own grace."""
        self._state.record = stopping.shut_down(self.record, self.pod.grace_seconds, self.node.clock())
        self.step()

    def stop(self, grace_seconds: int) -> None:
        """The pod is to end within ``grace_seconds``."""
        self._state.record = stopping.told_to_stop(self.record, grace_seconds, self.node.clock())
        self.step()

    def close(self) -> None:
        """Leave the pod alone: its processes go on without this agent."""
        if self._timer is not None:
            self._timer.cancel()

    def forget(self) -> None:
        """The pod is over for everybody: remove its folder."""
        self.close()
        self._state.folder.remove()

    def report(self) -> PodReport:
        """The pod's state for the report."""
        return PodReport(self.uid, self.pod.namespace, self.pod.name, self._status)

    def step(self) -> None:
        """Do what is to be done now."""
        now, settings = self.node.clock(), self.node.settings
        plan = decide(self.pod, self.record, RestartRule(settings.backoff_ms, settings.backoff_limit_ms), now)
        self._state.record, wake_at = with_conditions(self.pod, plan.record, now), plan.wake_at
        try:
            self._save()  # before anything is done that must not be done twice
        except OSError as error:
            wake_at = min(now + _SAVE_AGAIN_MS, wake_at or now + _SAVE_AGAIN_MS)
            plan = self._hold_back(plan, error, wake_at)
        for action in plan.actions:
            self._perform(action)
        if not self.record.alive:
            self._remove_groups()
            self._state.folder.remove_shared_memory()
        self._wake_at(wake_at, now)
        status = pod_status(self.pod, self.record, self._state.manifest, self._notes)
        if status != self._status or self.record.gone:
            self._status = status
            self.node.changed(self.uid)

    def _perform(self, action: Action) -> None:
        container, record = self._state.container(action.container), self._state.get(action.container)
        match action.verb:
            case Verb.START:
                self.node.run(self._attempts.start(container, record.attempt))
            case Verb.PROBE:
                self.node.run(self._commands.probe(container, record, action.probe))
            case Verb.POST_START:
                self.node.run(self._commands.post_start(container, record))
            case Verb.PRE_STOP:
                self.node.run(self._commands.pre_stop(container, record))
            case Verb.TERMINATE | Verb.KILL if record.process is not None:
                cgroups, group = self.node.isolation.cgroups, self._state.group(container.name)
                ending.send(action.verb is Verb.KILL, record.process, cgroups, group)

    def _save(self) -> None:
        if not self._kept:
            self.preparation.create_folder()
            self._state.folder.save("pod.json", self._state.manifest)
            self._kept = True
        data = archive.encode(self.record)
        if data != self._saved:
            self._state.folder.save("record.json", data)
            self._saved = data

    def _hold_back(self, plan: Plan, error: OSError, until: int) -> Plan:
        """Nothing is begun that cannot be remembered. What runs is ended all the same: its shims write how it ended."""
        message = f"the node cannot write to its data folder: {error.strerror}"
        for action in plan.actions:
            if action.verb is Verb.START:
                record = self._state.get(action.container)
                self._state.set(action.container, records.blocked(record, "DataFolderFailed", message, until))
        return replace(plan, actions=tuple(action for action in plan.actions if action.verb is not Verb.START))

    def _wake_at(self, at: int | None, now: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(loop.time() + (at - now) / 1000, self.step)

    def _remove_groups(self) -> None:
        for container in self.pod.containers:
            self.node.isolation.cgroups.remove(self._state.group(container.name))
        self.node.isolation.cgroups.remove(self.preparation.group)

    async def _refresh_volumes(self) -> None:
        try:
            self.preparation.refresh_volumes(await fetch_secrets(self.node, self._state.manifest))
        except (NotYet, OSError, ValueError) as error:
            _log.warning("volumes_not_refreshed", extra={"uid": self.uid, "error": str(error)})


def _read(manifest: Manifest, user_id: int, now: int) -> tuple[Pod, PodRecord]:
    """The pod of ``manifest`` and its first record; one that cannot be read is a pod without containers that failed."""
    try:
        pod, stop = read_pod(manifest), None
    except InvalidPod as error:
        metadata = manifest["metadata"]
        uid, namespace, name = (str(metadata.get(part) or "") for part in ("uid", "namespace", "name"))
        pod = Pod(uid, namespace, name, (), "Never", 0, None)
        stop = Stop(now, 0, "InvalidPod", str(error))
    else:
        if "deletionTimestamp" in manifest["metadata"]:  # deleted before it was ever seen here: it is not begun
            stop = Stop(now, 0)
    empty = {container.name: ContainerRecord() for container in pod.containers}
    return pod, PodRecord(empty, accepted_at=now, user_id=user_id, stop=stop)


def _own_part(manifest: Manifest, node: Node) -> Manifest:
    """The manifest without what changes with every report of this node, and with the node's address."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _VERSIONS}
    address = (manifest.get("status") or {}).get("podIP")
    status = {"podIP": address, "hostIP": node.settings.host_ip} if address else {"hostIP": node.settings.host_ip}
    return {**manifest, "metadata": metadata, "status": status}
