"""A program that goes on asking while the server is away."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from bus.host_ports import free_port
from tidegate.api.v1 import api_pb2, api_pb2_grpc
from tidegate.client import Endpoint, SyncClient, Unavailable


class Server(api_pb2_grpc.TidegateServiceServicer):
    """Knows who is asking, and nothing else."""

    def WhoAmI(self, request: api_pb2.WhoAmIRequest, context: Any) -> api_pb2.WhoAmIResponse:
        return api_pb2.WhoAmIResponse(user="ann")


def test_a_server_that_was_away_is_found_within_a_moment_of_its_return() -> None:
    """By default gRPC would look for it ever more seldom, in the end every two minutes."""
    port = free_port()
    with SyncClient(Endpoint(f"127.0.0.1:{port}")) as client:
        away_until = time.monotonic() + 3.0
        while time.monotonic() < away_until:
            with pytest.raises(Unavailable):
                client.whoami()
            time.sleep(0.1)
        server = grpc.server(ThreadPoolExecutor(1))
        api_pb2_grpc.add_TidegateServiceServicer_to_server(Server(), server)
        server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        found_until = time.monotonic() + 1.6
        while True:
            try:
                assert client.whoami().name == "ann"
                break
            except Unavailable:
                assert time.monotonic() < found_until, "it is there, and not looked for"
                time.sleep(0.05)
        server.stop(None).wait()
