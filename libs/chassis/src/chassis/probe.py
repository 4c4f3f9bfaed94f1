"""`python -IS probe.py`: asks the service of this container whether it is ready; exits with 1 when it is not.

The port is the service's own TIDEGATE_HEALTH_PORT. For container runtimes that can only run a command. They run it every few
seconds for as long as the service lives, so it needs nothing but the standard library, and the one call is written out here,
as frames of HTTP/2 (RFC 9113): to load gRPC takes ten times as long as all the rest.
"""

import os
import socket
import sys
from collections.abc import Iterator

TIMEOUT_SECONDS = 4.0
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4
SERVING = b"\x08\x01"
"""A HealthCheckResponse whose field 1, the status, is 1."""


def serves(port: int) -> bool:
    """Whether what listens on ``port`` of this machine answers the standard health check with SERVING."""
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
            connection.sendall(_request())
            return any(kind == DATA and content[5:] == SERVING for kind, content in _frames(connection))
    except OSError:
        return False


def _request() -> bytes:
    """One call of grpc.health.v1.Health/Check with an empty message, which asks about the process as a whole."""
    static = b"\x83\x86"  # HPACK's table has them: the method POST, the scheme http
    named = _field(b"\x04", b"/grpc.health.v1.Health/Check") + _field(b"\x01", b"localhost")
    named += _field(b"\x0f\x10", b"application/grpc") + _field(b"\x00\x02te", b"trailers")
    headers = _frame(HEADERS, END_HEADERS, 1, static + named)
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(SETTINGS, 0, 0) + headers + _frame(DATA, END_STREAM, 1, bytes(5))
    )


def _field(name: bytes, value: bytes) -> bytes:
    """A header that is no part of HPACK's table; ``name`` is the place of its name there, or the name."""
    return name + bytes([len(value)]) + value


def _frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def _frames(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """The answer's frames, by kind and content, until the call or the connection ends."""
    with connection.makefile("rb") as stream:
        while len(head := stream.read(9)) == 9:
            kind, flags, content = head[3], head[4], stream.read(int.from_bytes(head[:3], "big"))
            yield kind, content
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                return


if __name__ == "__main__":
    sys.exit(0 if serves(int(os.environ["TIDEGATE_HEALTH_PORT"])) else 1)
