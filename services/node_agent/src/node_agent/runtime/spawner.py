"""A small warm process that forks shims: a fork of it costs a millisecond, a fresh interpreter would cost twenty.

It is fed by one socket, a message per start: a letter (``S`` for a shim, ``X`` for a command inside a container, ``N``
for a trial of namespaces) with two descriptors, a memory file with the request as JSON and a pipe for the reply. It ends
when the agent's side of the socket is closed; the shims do not.

Standard library only, started by ``python -I -S -c``.
"""

import gc
import json
import os
import signal
import socket
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from node_agent.runtime import inside, namespaces, shim, syscalls

SHIM, INSIDE, TRIAL = b"S", b"X", b"N"


def serve(fd: int) -> None:
    """Fork what is asked for until the socket ``fd`` is closed."""
    syscalls.set_process_name("tidegate-spawn")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # keep the pages shared with the forks
    channel = socket.socket(fileno=os.dup(fd))
    os.dup2(os.open("/dev/null", os.O_RDWR), fd)  # it was our standard input, which the forks expect to be open
    with channel:
        while True:
            letter, fds, _, _ = socket.recv_fds(channel, 16, 2)
            if not letter:
                return
            request_fd, reply = fds
            if os.fork() == 0:
                channel.close()
                _serve_one(letter, request_fd, reply)
            os.close(request_fd)
            os.close(reply)


def _serve_one(letter: bytes, request_fd: int, reply: int) -> None:
    status = 1
    try:
        with os.fdopen(request_fd, "rb") as stream:
            stream.seek(0)
            request = json.load(stream)
        _RUNNERS[letter](request, reply)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def _try_namespaces(request: Mapping[str, Any], reply: int) -> None:
    """See whether a mount namespace can be had and filled; replies with ``error``, "" when it can."""
    error = ""
    try:
        namespaces.enter_new(bool(request["own_user"]))
        view = {"stage": request["stage"], "host_name": "tidegate-trial", "reach": [], "mounts": []}
        namespaces.build(view, os.getuid(), [os.getgid()])
        syscalls.mount("tidegate", request["stage"], "tmpfs")
    except OSError as caught:
        error = str(caught)
    os.write(reply, json.dumps({"error": error}).encode() + b"\n")


_RUNNERS: dict[bytes, Callable[[Mapping[str, Any], int], None]] = {
    SHIM: shim.run,
    INSIDE: inside.run,
    TRIAL: _try_namespaces,
}
