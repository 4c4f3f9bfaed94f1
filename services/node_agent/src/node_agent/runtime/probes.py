"""Carrying out probes and hooks from outside of the container: connections and HTTP requests."""

import asyncio
import ssl

from kube import Manifest
from node_agent.domain.containers import Handler

ANSWER_LIMIT = 10 << 10


def port_number(port: str, container: Manifest) -> int:
    """The number of ``port``, which may be the name of one of the container's ports; raises ValueError naming it."""
    if port.isdigit():
        return int(port)
    for item in container.get("ports") or ():
        if item.get("name") == port:
            return int(item["containerPort"])
    raise ValueError(f"container {container.get('name')} has no port named {port!r}")


async def check(handler: Handler, container: Manifest, address: str, timeout_seconds: float) -> str:
    """Make the connection or request of ``handler``; returns what is wrong, "" when nothing is."""
    host = handler.host or address
    try:
        port = port_number(handler.port, container)
        async with asyncio.timeout(timeout_seconds):
            if handler.path:
                return await _get(handler, host, port)
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return ""
    except TimeoutError:
        return f"no answer from {host}:{handler.port} within {timeout_seconds:g} s"
    except (OSError, ValueError) as error:
        return f"{host}:{handler.port}: {error}"


async def _get(handler: Handler, host: str, port: int) -> str:
    context = None
    if handler.scheme == "HTTPS":  # as with a kubelet the certificate is not checked
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": "tidegate-probe", "Accept": "*/*", "Connection": "close"}
        headers |= dict(handler.headers)
        lines = [f"GET {handler.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        status = (await reader.readline()).split()
        code = int(status[1]) if len(status) > 1 else 0
        await reader.read(ANSWER_LIMIT)
    finally:
        writer.close()
    return "" if 200 <= code < 400 else f"GET {handler.path} on {host}:{port} was answered with {code}"
