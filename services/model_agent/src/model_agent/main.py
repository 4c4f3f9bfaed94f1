"""The program: stands before a model's server in its pod, with the arguments of KServe's agent.

``POD_IP`` is the address that it listens at and the server has; without it, it listens at all addresses of the pod.
"""

import argparse
import os
import sys

from aiohttp import web

from model_agent.events import Events, Told
from model_agent.server import Agent

PORT, COMPONENT_PORT = 9081, 8080
BATCH, LATENCY_MS = 32, 5000


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="model_agent")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--component-port", type=int, default=COMPONENT_PORT)
    parser.add_argument("--enable-batcher", action="store_true")
    parser.add_argument("--max-batchsize", type=int, default=BATCH)
    parser.add_argument("--max-latency", type=int, default=LATENCY_MS, help="milliseconds")
    for name in (
        "log-url",
        "source-uri",
        "inference-service",
        "namespace",
        "endpoint",
        "component",
        "metadata-headers",
    ):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--log-mode", choices=["all", "request", "response"], default="all")
    return parser


def main(words: list[str]) -> int:
    """Run the agent; the exit code."""
    given = _arguments().parse_args(words)
    batching = (given.max_batchsize, given.max_latency / 1000) if given.enable_batcher else None
    events = None
    if given.log_url:
        if not given.log_url.startswith(("http://", "https://")):
            print(f"--log-url {given.log_url}: events are told by http:// and https:// only", file=sys.stderr)
            return 1
        headers = tuple(name for name in given.metadata_headers.split(",") if name)
        told = (given.log_mode, given.source_uri, given.inference_service, given.namespace, given.endpoint)
        events = Events(Told(given.log_url, *told, given.component, headers))
    own = os.environ.get("POD_IP", "")
    agent, host = Agent(own or "127.0.0.1", given.component_port, batching, events), own or "0.0.0.0"
    web.run_app(
        agent.application(),
        host=host,
        port=given.port,
        access_log=None,
        print=lambda _: print(f"listening at {host}:{given.port}", flush=True),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
