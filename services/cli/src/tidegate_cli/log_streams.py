"""The logs of several containers as one: whole lines, each behind the name of who wrote it."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping

Open = Callable[[], Iterator[bytes]]


def prefixed(pieces: Iterator[bytes], prefix: bytes) -> Iterator[bytes]:
    """The lines of ``pieces``, each with ``prefix`` before it and a line end behind it."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield b"".join(prefix + line + b"\n" for line in lines)
    if rest:
        yield prefix + rest + b"\n"


def merged(sources: Mapping[str, Open], failed: Callable[[Exception], None]) -> Iterator[bytes]:
    """What all ``sources`` (by prefix) give, read at once, in the order in which it comes.

    A source that ends with an error is handed to ``failed``; the others go on.
    """
    arrived: queue.Queue[bytes | Exception | None] = queue.Queue(1024)

    def read(prefix: str, source: Open) -> None:
        try:
            for lines in prefixed(source(), prefix.encode()):
                arrived.put(lines)
        except Exception as error:
            arrived.put(error)
        arrived.put(None)

    for prefix, source in sources.items():
        # Nobody waits for them at the end: closing the connection ends what they read.
        threading.Thread(target=read, args=(prefix, source), daemon=True).start()
    left = len(sources)
    while left:
        item = arrived.get()
        if item is None:
            left -= 1
        elif isinstance(item, Exception):
            failed(item)
        else:
            yield item
