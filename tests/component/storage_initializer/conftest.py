"""A web server with the troubles of real ones, and the program as a process."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from storage_initializer import main


@dataclass
class Web:
    """What the server has, what it does wrong, and what it was asked. ``cuts`` are sizes after which answers break off."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    failing: list[int] = field(default_factory=list)
    ranges: bool = True
    asked: list[dict[str, str]] = field(default_factory=list)
    hold: threading.Event | None = None
    """An answer that is cut waits for this instead, with the line open."""
    reached: threading.Event = field(default_factory=threading.Event)


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            web.asked.append(dict(self.headers))
            if web.failing:
                self.send_error(web.failing.pop(0))
                return
            data = web.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            tag = web.tags.get(self.path, '"1"')
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
            start = 0
            if wanted and web.ranges and self.headers.get("If-Range", tag) == tag:
                start = int(wanted[1])
                if start >= len(data):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            else:
                self.send_response(200)
            self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self._write(data[start:])

        def _write(self, data: bytes) -> None:
            if not web.cuts:
                self.wfile.write(data)
                return
            self.wfile.write(data[: web.cuts.pop(0)])
            self.wfile.flush()
            web.reached.set()
            if web.hold is not None:
                web.hold.wait(60)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    if made.hold is not None:
        made.hold.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def started() -> Callable[..., subprocess.Popen[str]]:
    """Starts the program with these words; ``variables`` are more of them."""

    def start(*words: str, variables: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        site = str(Path(main.__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-m", "storage_initializer.main", *words],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": site, **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    return start
