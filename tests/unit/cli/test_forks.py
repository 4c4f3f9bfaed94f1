"""The command line's processes start others while gRPC works: nothing of gRPC takes part in that."""

import subprocess
import sys

SCRIPT = """
import asyncio, subprocess
import tidegate_cli.main
import grpc.aio

async def main():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        for _ in range(3):
            try:
                await channel.unary_unary("/nobody/answers")(b"")
            except grpc.aio.AioRpcError:
                pass
            subprocess.run(["true"], preexec_fn=lambda: None)
    await server.stop(None)

asyncio.run(main())
"""


def test_a_fork_beside_calls_is_none_of_grpcs_business() -> None:
    """It says so where its handlers are installed and cannot run."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert "fork" not in done.stderr
