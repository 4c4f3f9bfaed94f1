"""Model servers and stores of models for real. What they run in is installed by `make test-serving`, and else skipped where it is not."""

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bus.server import free_port
from node_agent.environments import InstallFailed, install, is_installed
from node_agent.program_list import default_folder, read_list
from storage_initializer import main

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from cut_line import CutLine  # noqa: E402
from model_hub import Hub, serve  # noqa: E402

INSTALLS = os.environ.get("TIDEGATE_SERVING") == "install"


def installed(name: str) -> Path:
    """The folder of an environment. Skips the test where it is not installed and is not to be."""
    folder, wanted = default_folder() / name, read_list(HERE / "environments.yaml").environments[name]
    if not is_installed(folder, wanted):
        if not INSTALLS:
            pytest.skip(f"environment {name} is not installed; TIDEGATE_SERVING=install installs what these tests need")
        try:
            install(folder, wanted)
        except InstallFailed as error:
            pytest.skip(f"environment {name} cannot be installed: {error}")
    return folder


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Path]:
    """The folder of an environment, by its name."""
    return installed


_PLAIN = {"Content-Type": "application/octet-stream"}


class Bucketeer:
    """An endpoint that speaks S3, empty at first."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"

    def put(self, path: str, data: bytes = b"", **headers: str) -> None:
        """A bucket (``name``), or an object (``bucket/key``)."""
        request = urllib.request.Request(f"{self.url}/{path}", data=data, method="PUT", headers=_PLAIN | headers)
        urllib.request.urlopen(request, timeout=30).close()


@pytest.fixture(scope="session")
def s3() -> Iterator[Bucketeer]:
    folder, port = installed("s3-endpoint"), free_port()
    command = [str(folder / "bin" / "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port, process)
            yield Bucketeer(port)
        finally:
            process.kill()


@pytest.fixture
def line(s3: Bucketeer) -> Iterator[CutLine]:
    """A line to the endpoint that can be cut."""
    with CutLine(s3.port) as made:
        yield made


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    server = serve(made)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


class Heard:
    """What somebody was told by events."""

    def __init__(self) -> None:
        self.url, self.events = "", list[tuple[dict[str, str], bytes]]()


@pytest.fixture
def heard() -> Iterator[Heard]:
    made = Heard()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.events.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetched() -> Callable[..., "subprocess.Popen[str]"]:
    """Starts storage_initializer in the environment that has its libraries."""
    python = installed("storage") / "bin" / "python"

    def start(uri: str, folder: Path, **variables: str) -> "subprocess.Popen[str]":
        kept = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}
        return subprocess.Popen(
            [str(python), "-m", "storage_initializer.main", uri, str(folder)],
            env={**kept, "PYTHONPATH": str(Path(main.__file__).parents[1]), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, f"it ended with {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")
