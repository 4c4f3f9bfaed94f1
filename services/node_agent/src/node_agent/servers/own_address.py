"""Runs a Python program so that what it would bind to all addresses of the machine is bound to its pod's own address.

    python own_address.py PROGRAM.py ARGUMENT ...      python own_address.py -m MODULE ARGUMENT ...

Pods of one machine share its network, and KServe's server binds its ports to all addresses, so a second one could not start.
POD_IP names the address; without it nothing is changed.
"""

import asyncio
import os
import runpy
import socket
import sys
from typing import Any

ANY = frozenset(["", "0.0.0.0", "::", "[::]"])


def hold() -> None:
    """From now on sockets, asyncio's servers and gRPC's bind the pod's address where they are told to bind all."""
    own = os.environ.get("POD_IP")
    if own:
        _hold_sockets(own)
        _hold_loops(own)
        _hold_grpc(own)


def _hold_sockets(own: str) -> None:
    bind = socket.socket.bind

    def bind_own(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] in ANY:
            address = ("::ffff:" + own if self.family == socket.AF_INET6 else own, *address[1:])
        bind(self, address)

    socket.socket.bind = bind_own


def _hold_loops(own: str) -> None:
    loops: list[Any] = [asyncio.BaseEventLoop]
    try:
        import uvloop

        loops.append(uvloop.Loop)
    except ImportError:
        pass
    for loop in loops:
        loop.create_server = _on_own_host(loop.create_server, own)


def _on_own_host(create_server: Any, own: str) -> Any:
    def create(self: Any, factory: Any, host: Any = None, port: Any = None, **others: Any) -> Any:
        is_any = "sock" not in others and (host is None or host in ANY)
        return create_server(self, factory, own if is_any else host, port, **others)

    return create


def _hold_grpc(own: str) -> None:
    try:
        from grpc import _server
        from grpc.aio._server import Server
    except ImportError:
        return
    kinds: list[Any] = [Server, _server._Server]
    for kind in kinds:
        for name in ("add_insecure_port", "add_secure_port"):
            setattr(kind, name, _on_own_port(getattr(kind, name), own))


def _on_own_port(add_port: Any, own: str) -> Any:
    def add(self: Any, address: str, *others: Any) -> Any:
        host, colon, port = address.rpartition(":")
        return add_port(self, f"{own}:{port}" if colon and host in ANY else address, *others)

    return add


def main() -> None:
    """Run the program that the arguments name, as if it had been started itself."""
    words = sys.argv[1:]
    hold()
    if words and words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))  # noqa: PTH100, PTH120 - as Python itself does it
        runpy.run_path(words[0], run_name="__main__")
    else:
        sys.exit("which program? python own_address.py PROGRAM.py ARGUMENT ...")


if __name__ == "__main__":
    main()
