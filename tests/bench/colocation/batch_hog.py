"""Batch work that takes all it gets: ``python batch_hog.py cpu|memory PROCESSES``."""

import hashlib
import os
import sys

import numpy as np

STREAM_BYTES = 64 << 20
"""More than the caches hold: every round goes through memory."""


def compute() -> None:
    """Never waits for memory."""
    document = bytes(1 << 20)
    while True:
        hashlib.sha256(document).digest()


def stream() -> None:
    """Does little but wait for memory."""
    source = np.ones(STREAM_BYTES // 8)
    target = np.zeros(STREAM_BYTES // 8)
    while True:
        np.copyto(target, source)
        np.copyto(source, target)


def main() -> None:
    """The named work in so many processes."""
    work = {"cpu": compute, "memory": stream}[sys.argv[1]]
    for _ in range(int(sys.argv[2]) - 1):
        if os.fork() == 0:
            work()
    work()


if __name__ == "__main__":
    main()
