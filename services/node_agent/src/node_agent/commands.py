"""Probes and hooks of a running container, carried out."""

import asyncio
from typing import Any

from node_agent.domain.containers import Container, Handler
from node_agent.domain.records import Process
from node_agent.node import Node
from node_agent.preparation import NeverPossible, NotYet, PodPreparation, fetch_secrets
from node_agent.runtime.probes import check

# A hook has no limit of its own in Kubernetes; this one only keeps a lost one from being kept for ever.
HOOK_LIMIT_MS = 3_600_000


async def carry_out(
    node: Node, preparation: PodPreparation, container: Container, process: Process, handler: Handler, timeout_ms: int
) -> str:
    """Do what ``handler`` says with a limit of ``timeout_ms``; returns what went wrong, "" when nothing did."""
    if handler.command:
        return await _command(node, preparation, container, process, handler, timeout_ms)
    if handler.port:
        manifest = preparation.container_manifest(container.name)
        address = str((preparation.manifest.get("status") or {}).get("podIP") or "127.0.0.1")
        return await check(handler, manifest, address, timeout_ms / 1000)
    await asyncio.sleep(min(handler.sleep_seconds, timeout_ms / 1000))
    return ""


async def _command(
    node: Node, preparation: PodPreparation, container: Container, process: Process, handler: Handler, timeout_ms: int
) -> str:
    try:
        secrets = await fetch_secrets(node, preparation.manifest)
        request: dict[str, Any] = preparation.inside_request(container, secrets)
    except (NotYet, NeverPossible) as error:
        return str(error)
    request |= {
        "argv": list(handler.command),
        "timeout_ms": timeout_ms,
        "inside": {"pid": process.pid, "started": process.started, "namespaces": preparation.namespaces},
    }
    try:
        code, output = await node.launcher.run_inside(request)
    except OSError as error:
        return str(error)
    if code is None:
        return f"command {list(handler.command)} took longer than {timeout_ms} ms"
    return f"command {list(handler.command)} ended with {code}: {output[-500:]}" if code else ""
