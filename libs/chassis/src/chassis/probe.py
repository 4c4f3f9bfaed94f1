"""`python -m chassis.probe`: asks the service of this container whether it is ready; exits with 1 when it is not.

The port is the service's own TIDEGATE_HEALTH_PORT. For container runtimes that can only run a command.
"""

import os
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT_SECONDS = 4.0


def serves(port: int) -> bool:
    """Whether what listens on ``port`` of this machine answers that it serves."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_SECONDS)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


if __name__ == "__main__":
    sys.exit(0 if serves(int(os.environ["TIDEGATE_HEALTH_PORT"])) else 1)
