"""Probes and hooks of a pod's running containers, carried out."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from node_agent.domain import probing, records
from node_agent.domain.containers import Container, Handler
from node_agent.domain.records import ContainerRecord, Process, Stage
from node_agent.needs import NeverPossible, NotYet, fetch_secrets
from node_agent.pod_state import PodState
from node_agent.runtime.probes import check

_log = logging.getLogger(__name__)

# A hook has no limit of its own in Kubernetes; this one only keeps a lost one from being kept for ever.
HOOK_LIMIT_MS = 3_600_000
_SAID_BYTES = 500


class Commands:
    """Asks the containers of one pod, and takes in their answers."""

    def __init__(self, state: PodState) -> None:
        self._state, self._node = state, state.node

    async def probe(self, container: Container, asked: ContainerRecord, kind: str) -> None:
        """Make a probe of ``kind``."""
        probe = dict(container.probes())[kind]
        failure = await self._carry_out(container, asked.process, probe.handler, probe.timeout_ms)
        now = self._node.clock()
        self._answer(container, asked, lambda record: probing.answered(record, container, kind, failure, now))

    async def post_start(self, container: Container, asked: ContainerRecord) -> None:
        """Run the postStart hook."""
        failure = await self._carry_out(container, asked.process, container.post_start, HOOK_LIMIT_MS)
        self._log_failure(container, "postStart", failure)
        self._answer(container, asked, lambda record: records.post_start_done(record, failure))

    async def pre_stop(self, container: Container, asked: ContainerRecord) -> None:
        """Run the preStop hook for as long as the container's grace lasts."""
        left = max(1, asked.halt_deadline - self._node.clock())
        failure = await self._carry_out(container, asked.process, container.pre_stop, left)
        self._log_failure(container, "preStop", failure)
        self._answer(container, asked, records.pre_stop_done)

    def _answer(
        self, container: Container, asked: ContainerRecord, change: Callable[[ContainerRecord], ContainerRecord]
    ) -> None:
        """Take in an answer, unless the attempt that was asked about is over."""
        record = self._state.get(container.name)
        if record.attempt == asked.attempt and record.stage is Stage.RUNNING:
            self._state.set(container.name, change(record))
            self._state.step()

    def _log_failure(self, container: Container, hook: str, failure: str) -> None:
        if failure:
            extra = {"uid": self._state.pod.uid, "container": container.name, "hook": hook, "failure": failure}
            _log.warning("hook_failed", extra=extra)

    async def _carry_out(
        self, container: Container, process: Process | None, handler: Handler | None, timeout_ms: int
    ) -> str:
        """Do what ``handler`` says with a limit of ``timeout_ms``; returns what went wrong, "" when nothing did."""
        if process is None or handler is None:
            return "the container does not run"
        if handler.command:
            return await self._command(container, process, handler, timeout_ms)
        if handler.port:
            manifest = self._state.preparation.container_manifest(container.name)
            address = str((self._state.manifest.get("status") or {}).get("podIP") or "127.0.0.1")
            return await check(handler, manifest, address, timeout_ms / 1000)
        await asyncio.sleep(min(handler.sleep_seconds, timeout_ms / 1000))
        return ""

    async def _command(self, container: Container, process: Process, handler: Handler, timeout_ms: int) -> str:
        preparation = self._state.preparation
        try:
            secrets = await fetch_secrets(self._node, self._state.manifest)
            request: dict[str, Any] = preparation.inside_request(container, secrets)
            request |= {
                "argv": list(handler.command),
                "timeout_ms": timeout_ms,
                "inside": {"pid": process.pid, "started": process.started, "namespaces": preparation.namespaces},
            }
            code, output = await self._node.launcher.run_inside(request)
        except (NotYet, NeverPossible, OSError) as error:
            return str(error)
        if code is None:
            return f"command {list(handler.command)} took longer than {timeout_ms} ms"
        return f"command {list(handler.command)} ended with {code}: {output[-_SAID_BYTES:]}" if code else ""
