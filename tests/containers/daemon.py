"""A Docker daemon: the one that is reachable, or one of our own where that is asked for."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 30.0
STOP_SECONDS = 30.0
BRIDGE = Path("/sys/class/net/docker0")


class NoDocker(Exception):
    """There is no daemon and none is to be started, or a program is missing; the text says what would help."""


@contextmanager
def daemon() -> Iterator[None]:
    """A daemon behind DOCKER_HOST for as long as the context lasts. Raises NoDocker."""
    if _answers():
        yield
        return
    if os.environ.get("TIDEGATE_DOCKERD") != "start":
        raise NoDocker(
            "no Docker daemon is reachable; TIDEGATE_DOCKERD=start starts one, as root, where it is installed"
        )
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None or os.geteuid() != 0:
        raise NoDocker(
            "no Docker daemon is reachable, and none can be started: that needs root and the program dockerd"
        )
    with _started(program):
        yield


def _answers() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0


@contextmanager
def _started(program: str) -> Iterator[None]:
    """A daemon with a socket of its own. Its images are kept for the next time, beside what else is built only once.

    The machine's packet filter is left alone: containers reach one another, and this machine reaches them by their ports.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate" / "docker"
    with tempfile.TemporaryDirectory(prefix="tidegate-docker-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        host = f"unix://{folder}/docker.sock"
        places = {"host": host, "data-root": cache, "exec-root": folder / "exec", "pidfile": folder / "pid"}
        words = ["--iptables=false", *(f"--{name}={place}" for name, place in places.items())]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([program, *words], stdout=log, stderr=log, start_new_session=True)
        before, bridged = os.environ.get("DOCKER_HOST"), BRIDGE.exists()
        os.environ["DOCKER_HOST"] = host
        try:
            _wait(process, folder / "log")
            yield
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)
            _clear(folder, bridged)
            os.environ.pop("DOCKER_HOST")
            if before is not None:
                os.environ["DOCKER_HOST"] = before


def _clear(folder: Path, bridged: bool) -> None:
    """What a daemon leaves on the machine when it has ended: a mount, and a bridge that is nobody's where there was none."""
    subprocess.run(["umount", str(folder / "exec" / "netns" / "default")], capture_output=True, check=False)
    if not bridged:
        subprocess.run(["ip", "link", "delete", BRIDGE.name], capture_output=True, check=False)


def _wait(process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while not _answers():
        if process.poll() is not None or time.monotonic() > until:
            raise NoDocker(f"dockerd does not start: {log.read_text().strip()[-500:]}")
        time.sleep(0.2)
