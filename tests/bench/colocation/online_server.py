"""A latency-sensitive service: each request is a piece of work of fixed size that reads memory. One process for each port.

Run by its path (``python online_server.py PORT...``): as a pod, or by hand.
"""

import hashlib
import os
import socket
import sys

import numpy as np

TABLE_BYTES = 4 << 20
"""What a request reads of at random places: about what a service keeps warm in its caches."""
READS = 40_000
DIGEST_BYTES = 256 << 10


def serve(port: int) -> None:
    """Answer every datagram with itself once its work is done."""
    chance = np.random.default_rng(port)
    table = np.arange(TABLE_BYTES // 8)
    places = chance.integers(0, len(table), READS)
    document = bytes(DIGEST_BYTES)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("127.0.0.1", port))
        while True:
            request, sender = door.recvfrom(64)
            table[places].sum()
            hashlib.sha256(document).digest()
            door.sendto(request, sender)


def main() -> None:
    """One process for each port that is named."""
    ports = [int(word) for word in sys.argv[1:]]
    for port in ports[1:]:
        if os.fork() == 0:
            serve(port)
    serve(ports[0])


if __name__ == "__main__":
    main()
