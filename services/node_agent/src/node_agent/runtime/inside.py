"""One command inside a running container: a probe or a hook. It ends with its time limit, or with the spawner.

Standard library only. The reply is one JSON line: ``exit_code`` (None when it took too long) and ``output``, its tail.
"""

import json
import os
import select
import signal
import time
from collections.abc import Mapping
from typing import Any

from node_agent.runtime import container, syscalls

OUTPUT_LIMIT = 4_096


def run(request: Mapping[str, Any], reply: int) -> None:
    """Run the request's program with a limit of ``timeout_ms``; besides that see ``container.become``."""
    os.setsid()
    syscalls.die_with_parent(signal.SIGTERM)
    syscalls.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reading, output = os.pipe()
    failing, failure = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.close(failing)
        container.become(request, output, failure)
    os.close(output)
    os.close(failure)
    with os.fdopen(failing, "rb") as stream:
        message = stream.read()
    limit = time.monotonic() + request["timeout_ms"] / 1000
    exit_code, said = _follow(pid, reading, limit)
    tail = message or said
    news = {"exit_code": exit_code, "output": tail.decode(errors="replace").strip()}
    try:
        os.write(reply, json.dumps(news).encode() + b"\n")
    except BrokenPipeError:
        pass
    os.close(reply)


def _follow(pid: int, reading: int, limit: float) -> tuple[int | None, bytes]:
    """Read what the process says until it ends or its time is up; then end it with all of its group."""
    watched = os.pidfd_open(pid)
    said = b""
    sources = [watched, reading]
    in_time = True
    while watched in sources:
        left = limit - time.monotonic()
        ready = select.select(sources, [], [], max(0.0, left))[0]
        if not ready:
            in_time = False
            break
        if reading in ready:
            chunk = os.read(reading, OUTPUT_LIMIT)
            said = (said + chunk)[-OUTPUT_LIMIT:]
            if not chunk:
                sources.remove(reading)
        elif watched in ready:
            break
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return (code if code >= 0 else 128 - code) if in_time else None, said
