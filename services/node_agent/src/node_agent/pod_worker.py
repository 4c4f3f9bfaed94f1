"""One pod: carries out what its lifecycle decides, and tells the lifecycle what came of it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kube import Manifest
from node_agent.commands import HOOK_LIMIT_MS, carry_out
from node_agent.domain import archive, probing, records, stopping
from node_agent.domain.containers import Container, InvalidPod, Pod, read_pod
from node_agent.domain.lifecycle import Action, RestartRule, Verb, decide
from node_agent.domain.records import ContainerRecord, PodRecord, Stage, Stop, Termination
from node_agent.domain.status import pod_status, with_conditions
from node_agent.node import Node
from node_agent.ports import PodReport
from node_agent.preparation import NeverPossible, NotYet, PodPreparation, fetch_secrets
from node_agent.runtime import ending
from node_agent.runtime.folders import PodFolder
from node_agent.runtime.logs import message_of
from node_agent.runtime.processes import is_alive
from node_agent.runtime.shims import ShimState, read_state

_log = logging.getLogger(__name__)

# What a container ends with whose watching process was lost: nobody saw the real code.
LOST_EXIT_CODE = 137
_NEVER = 1 << 53
_CLAIM_SECONDS = 0.02


class PodWorker:
    """The pod of one uid on this node, from its assignment until it is forgotten."""

    def __init__(self, node: Node, manifest: Manifest, record: PodRecord | None, user_id: int) -> None:
        self.node = node
        self.manifest = _with_host(manifest, node)
        self.uid = str(manifest["metadata"]["uid"])
        self.folder: PodFolder = node.data.pod(self.uid)
        self.notes: dict[str, str] = {}
        self._saved: dict[str, Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._status: Manifest = {}
        now = node.clock()
        try:
            self.pod, stop = read_pod(manifest), None
        except InvalidPod as error:
            metadata = manifest["metadata"]
            self.pod = Pod(self.uid, str(metadata.get("namespace")), str(metadata.get("name")), (), "Never", 0, None)
            stop = Stop(now, 0, "InvalidPod", str(error))
        empty = {container.name: ContainerRecord() for container in self.pod.containers}
        self.record = record or PodRecord(empty, accepted_at=now, user_id=user_id, stop=stop)
        self.preparation = PodPreparation(node, self.pod, self.manifest, self.folder, self.record.user_id)

    def begin(self) -> None:
        """Take the pod up: a new one, or one that a predecessor of this process has left."""
        self.preparation.create_folder()
        self.folder.save("pod.json", self.manifest)
        for name, state in self.record.containers.items():
            if state.alive:
                self._find_again(name, state)
        self.step()

    def update(self, manifest: Manifest) -> None:
        """The assignment names the pod again: with a deletion, or other labels and annotations."""
        manifest = _with_host(manifest, self.node)
        if manifest != self.manifest:
            self.manifest = self.preparation.manifest = manifest
            self.folder.save("pod.json", manifest)
            self.refresh_files()
        metadata = manifest["metadata"]
        if "deletionTimestamp" in metadata:
            grace = metadata.get("deletionGracePeriodSeconds")
            self.stop(self.pod.grace_seconds if grace is None else int(grace))

    def refresh_names(self) -> None:
        """The names of the pod's peers may have changed."""
        if self.record.alive:
            self.preparation.write_hosts()

    def refresh_files(self) -> None:
        """What the pod's volumes are made of may have changed, and what a container waits for may have come."""
        if self.record.alive and self.preparation.has_files():
            self.node.run(self._refresh_volumes())
        for name, state in self.record.containers.items():
            if state.retry_at == _NEVER:
                self._set(name, replace(state, retry_at=0))
        self.step()

    def stop(self, grace_seconds: int) -> None:
        """The pod is to end within ``grace_seconds``."""
        self.record = stopping.told_to_stop(self.record, grace_seconds, self.node.clock())
        self.step()

    def close(self) -> None:
        """Leave the pod alone: its processes go on without this agent."""
        if self._timer is not None:
            self._timer.cancel()

    def forget(self) -> None:
        """The pod is over for everybody: remove its folder."""
        self.close()
        self.folder.remove()

    def report(self) -> PodReport:
        """The pod's state for the report."""
        return PodReport(self.uid, self.pod.namespace, self.pod.name, self._status)

    def step(self) -> None:
        """Do what is to be done now."""
        now = self.node.clock()
        settings = self.node.settings
        plan = decide(self.pod, self.record, RestartRule(settings.backoff_ms, settings.backoff_limit_ms), now)
        self.record = with_conditions(self.pod, plan.record, now)
        self._save()
        for action in plan.actions:
            self._perform(action)
        if not self.record.alive:
            self._clean()
        self._wake_at(plan.wake_at, now)
        status = pod_status(self.pod, self.record, self.manifest, self.notes)
        if status != self._status or self.record.gone:
            self._status = status
            self.node.changed(self.uid)

    def _save(self) -> None:
        data = archive.encode(self.record)
        if data != self._saved:
            self.folder.save("record.json", data)
            self._saved = data

    def _wake_at(self, at: int | None, now: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(loop.time() + (at - now) / 1000, self.step)

    def _clean(self) -> None:
        """Nothing runs: its groups go."""
        cgroups = self.node.isolation.cgroups
        for container in self.pod.containers:
            cgroups.remove(f"{self.uid}/{container.name}")
        cgroups.remove(self.uid)

    def _perform(self, action: Action) -> None:
        container = next(item for item in self.pod.containers if item.name == action.container)
        state = self.record.containers[container.name]
        if action.verb is Verb.START:
            self.node.run(self._start(container, state.attempt))
        elif action.verb is Verb.PROBE:
            self.node.run(self._probe(container, state, action.probe))
        elif action.verb in (Verb.POST_START, Verb.PRE_STOP):
            self.node.run(self._hook(container, state, action.verb))
        elif state.process is not None:
            ending.send(
                action.verb is Verb.KILL, state.process, self.node.isolation.cgroups, self._group(container.name)
            )

    async def _start(self, container: Container, attempt: int) -> None:
        try:
            secrets = await fetch_secrets(self.node, self.manifest)
            prepared = self.preparation.prepare(container, attempt, secrets)
            self.notes |= prepared.notes
            news = await self.node.launcher.launch(prepared.request)
        except NotYet as error:
            retry_at = self.node.clock() + self.node.settings.secret_retry_ms if error.again else _NEVER
            state = self.record.containers[container.name]
            self._set(container.name, records.blocked(state, error.reason, str(error), retry_at))
        except NeverPossible as error:
            self._fail(container.name, error.reason, str(error))
        except OSError as error:
            self._failed_to_start(container.name, str(error))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _log.exception("pod_not_understood", extra={"uid": self.uid, "container": container.name})
            self._fail(
                container.name, "InvalidPod", f"container {container.name}: the manifest cannot be read: {error!r}"
            )
        else:
            state_of = read_state(self.folder.state(container.name, attempt)) or ShimState.read(news)
            self._take_up(container.name, attempt, state_of)
            return
        self.step()

    def _find_again(self, name: str, state: ContainerRecord) -> None:
        """What became of a container that was alive when the agent was last seen."""
        found = read_state(self.folder.state(name, state.attempt))
        container = next(item for item in self.pod.containers if item.name == name)
        if found is None and state.stage is Stage.STARTING:
            # Not known to be started: asked again, for the shim's claim lets only one of both requests through.
            self.node.run(self._start(container, state.attempt))
        else:
            self._take_up(name, state.attempt, found)

    def _take_up(self, name: str, attempt: int, found: ShimState | None) -> None:
        """Go on from the state that a shim has written."""
        state = self.record.containers[name]
        if state.attempt != attempt or not state.alive:
            return
        if found is None or found.shim == 0:
            self.node.run(self._lost(name, attempt))
            return
        if found.process is not None and state.stage is Stage.STARTING:
            container = next(item for item in self.pod.containers if item.name == name)
            self._set(name, records.launched(state, container, found.process, found.started_at))
        if found.end is not None:
            self._ended(name, found.end)
            return
        if found.process is None and is_alive(found.shim, found.shim_started):
            # Claimed by a shim that a predecessor of this agent asked for, and about to be started.
            file, loop = self.folder.state(name, attempt), asyncio.get_running_loop()
            loop.call_later(_CLAIM_SECONDS, lambda: self._take_up(name, attempt, read_state(file)))
            return
        self.node.watch.add(found.shim, found.shim_started, partial(self._shim_ended, name, attempt))
        self.step()

    def _shim_ended(self, name: str, attempt: int) -> None:
        state = self.record.containers[name]
        if state.attempt != attempt or not state.alive:
            return
        found = read_state(self.folder.state(name, attempt))
        if found is None or found.end is None:
            self.node.run(self._lost(name, attempt))
            return
        if found.process is not None and state.stage is Stage.STARTING:
            container = next(item for item in self.pod.containers if item.name == name)
            self._set(name, records.launched(state, container, found.process, found.started_at))
        self._ended(name, found.end)

    async def _lost(self, name: str, attempt: int) -> None:
        """The shim is gone without a word: end what it watched over, and count the container as failed."""
        found = read_state(self.folder.state(name, attempt))
        process = found.process if found else None
        await ending.end_all(process, self.uid, self.node.isolation.cgroups, self._group(name))
        message = f"the process that watched over container {name} was lost; all processes of the container were killed"
        state = self.record.containers[name]
        if state.attempt == attempt and state.alive:
            now = self.node.clock()
            self._ended(name, Termination(LOST_EXIT_CODE, "ShimLost", message, state.started_at, now))

    def _ended(self, name: str, end: Termination) -> None:
        state = self.record.containers[name]
        if end.exit_code and not end.message and self._wants_log(name):
            end = replace(end, message=message_of(self.preparation.log_file(name), 2_048))
        self.folder.state(name, state.attempt - 1).unlink(missing_ok=True)
        self._set(name, records.ended(state, end))
        self.step()

    def _wants_log(self, name: str) -> bool:
        manifest = self.preparation.container_manifest(name)
        return bool(manifest.get("terminationMessagePolicy") == "FallbackToLogsOnError")

    def _failed_to_start(self, name: str, message: str) -> None:
        now = self.node.clock()
        end = Termination(128, "StartError", message, 0, now)
        self._set(name, records.ended(self.record.containers[name], end))

    def _fail(self, name: str, reason: str, message: str) -> None:
        """The pod cannot be run on this node: end it as failed."""
        now = self.node.clock()
        self._set(name, records.ended(self.record.containers[name], Termination(128, reason, message, 0, now)))
        if self.record.stop is None:
            self.record = replace(self.record, stop=Stop(now, self.pod.grace_seconds * 1000, reason, message))

    async def _probe(self, container: Container, state: ContainerRecord, kind: str) -> None:
        probe = dict(container.probes())[kind]
        failure = await self._carry_out(container, state, probe.handler, probe.timeout_ms)
        self._answer(
            container.name, state, lambda now: probing.answered(now, container, kind, failure, self.node.clock())
        )

    async def _hook(self, container: Container, state: ContainerRecord, verb: Verb) -> None:
        handler = container.post_start if verb is Verb.POST_START else container.pre_stop
        limit = HOOK_LIMIT_MS if verb is Verb.POST_START else max(1, state.halt_deadline - self.node.clock())
        failure = await self._carry_out(container, state, handler, limit)
        if failure:
            extra = {"uid": self.uid, "container": container.name, "hook": verb.value, "failure": failure}
            _log.warning("hook_failed", extra=extra)
        if verb is Verb.POST_START:
            self._answer(container.name, state, lambda now: records.post_start_done(now, failure))
        else:
            self._answer(container.name, state, records.pre_stop_done)

    async def _carry_out(self, container: Container, state: ContainerRecord, handler: Any, timeout_ms: int) -> str:
        if state.process is None or handler is None:
            return "the container does not run"
        return await carry_out(self.node, self.preparation, container, state.process, handler, timeout_ms)

    def _answer(self, name: str, asked: ContainerRecord, change: Callable[[ContainerRecord], ContainerRecord]) -> None:
        """Take in an answer, unless the attempt that was asked about is over."""
        now = self.record.containers[name]
        if now.attempt == asked.attempt and now.stage is Stage.RUNNING:
            self._set(name, change(now))
            self.step()

    async def _refresh_volumes(self) -> None:
        try:
            secrets: Mapping[str, Mapping[str, bytes]] = await fetch_secrets(self.node, self.manifest)
            self.preparation.refresh_volumes(secrets)
        except (NotYet, OSError, ValueError) as error:
            _log.warning("volumes_not_refreshed", extra={"uid": self.uid, "error": str(error)})

    def _set(self, name: str, state: ContainerRecord) -> None:
        self.record = self.record.with_container(name, state)

    def _group(self, name: str) -> str:
        return f"{self.uid}/{name}"


def _with_host(manifest: Manifest, node: Node) -> Manifest:
    """The manifest with the node's address, which fields of it may refer to."""
    status = {**(manifest.get("status") or {}), "hostIP": node.settings.host_ip}
    return {**manifest, "status": status}
