"""Programs that bind all addresses, held to their pod's own: two of them can listen on the same port."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bus.server import free_port
from node_agent.program_list import SERVERS

SOCKET = """
import socket, sys
with socket.socket() as listening:
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("0.0.0.0", int(sys.argv[1])))
    print(listening.getsockname()[0], flush=True)
    sys.stdin.read()
"""
ASYNCIO = """
import asyncio, sys
async def main():
    server = await asyncio.start_server(lambda *_: None, {host!r}, int(sys.argv[1]))
    print(server.sockets[0].getsockname()[0], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()
asyncio.run(main())
"""
GRPC = """
import asyncio, sys, grpc
async def main():
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_insecure_port("[::]:" + sys.argv[1])
    await server.start()
    import socket
    with socket.socket() as probe:
        print("here" if probe.connect_ex((sys.argv[2], int(sys.argv[1]))) == 0 else "not here", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)
asyncio.run(main())
"""


def started(file: Path, address: str | None, port: int) -> "subprocess.Popen[str]":
    variables = {"POD_IP": address} if address else {}
    return subprocess.Popen(
        [sys.executable, str(SERVERS / "own_address.py"), str(file), str(port), address or ""],
        env={"PATH": os.environ["PATH"], **variables},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (SOCKET, ["127.64.9.1", "127.64.9.2"]),
        (ASYNCIO.format(host="0.0.0.0"), ["127.64.9.1", "127.64.9.2"]),
        (ASYNCIO.format(host=None), ["127.64.9.1", "127.64.9.2"]),
        (ASYNCIO.format(host="127.64.9.9"), ["127.64.9.9"]),
        (GRPC, ["here", "here"]),
    ],
)
def test_what_would_be_bound_to_all_addresses_is_bound_to_the_pods_own(
    tmp_path: Path, program: str, said: list[str]
) -> None:
    """An address that the program names itself stays."""
    file, port = tmp_path / "program.py", free_port()
    file.write_text(program)
    running = [started(file, f"127.64.9.{number}", port) for number in range(1, len(said) + 1)]
    found = [one.stdout.readline().strip() for one in running if one.stdout]
    for one in running:
        one.communicate("", timeout=60)
    assert found == said


def test_without_an_address_of_its_own_a_program_binds_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(SOCKET)
    said, _ = started(file, None, free_port()).communicate("", timeout=60)
    assert said.strip() == "0.0.0.0"
