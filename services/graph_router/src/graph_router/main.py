"""The program: ``graph_router --graph-json TEXT``, as KServe's router is started.

Variables: ``PROPAGATE_HEADERS`` (patterns of headers that steps are given too, with commas between), ``INFERENCE_GATEWAY`` (the
address that requests to Services of the cluster go to where their names lead nowhere), ``POD_IP`` and ``PORT`` (where it listens).
"""

import argparse
import asyncio
import os
import re
import signal
import sys

from aiohttp import web

from graph_router.graph import Graph
from graph_router.server import Router

DRAIN_SECONDS = 5
"""How long it serves on after it was told to stop: until everybody knows."""


async def serve(router: Router, host: str, port: int, drain_seconds: float) -> None:
    """Serve until a signal comes, and a little longer."""
    runner = web.AppRunner(router.application())
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    print(f"listening at {host}:{port}", flush=True)
    await stopped.wait()
    router.is_draining = True
    await asyncio.sleep(drain_seconds)
    await runner.cleanup()


def main(words: list[str]) -> int:
    """Run the router; the exit code."""
    parser = argparse.ArgumentParser(prog="graph_router")
    parser.add_argument("--graph-json", required=True)
    parser.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS)
    given = parser.parse_args(words)
    try:
        graph = Graph.of(given.graph_json)
        patterns = [re.compile(one) for one in os.environ.get("PROPAGATE_HEADERS", "").split(",") if one]
    except (ValueError, KeyError, TypeError, re.error) as error:
        print(f"the graph cannot be served: {error}", file=sys.stderr)
        return 1
    router = Router(graph, os.environ.get("INFERENCE_GATEWAY", ""), patterns)
    host, port = os.environ.get("POD_IP") or "0.0.0.0", int(os.environ.get("PORT", "8080"))
    asyncio.run(serve(router, host, port, given.drain_seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
