"""The Tiltfile, by compose: `tilt ci` brings the system up and runs a job, and a changed file is in a running service in seconds.

It works on a copy of the checkout, in which files may be changed. Tilt is looked for on the PATH and beside the lab's programs.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import images
import pytest

from bus.server import free_ports
from testing.background import process

pytestmark = pytest.mark.timeout(1800)
CI_SECONDS, UP_SECONDS = 1500.0, 300.0
RELOAD_SECONDS = 30.0
"""On a busy machine of two cores; docs/containers.md says what it takes on a quiet one."""
COPIED = ("Tiltfile", "compose.yaml", "requirements.lock", "deploy", "libs", "services", "examples")
SERVICE, CHANGED = "job-controller", "services/job_controller/src/job_controller/main.py"
UNSEEN = ("--port", "0", "--web-mode", "prod")
"""Nobody looks at its pages."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate" / "kubernetes-lab" / "tilt"


@dataclass(frozen=True, slots=True)
class Tilt:
    """The program, on a checkout of its own, with containers, volumes and ports that are nobody else's."""

    program: str
    checkout: Path
    flags: tuple[str, ...]
    environment: dict[str, str]

    def command(self, verb: str, *words: str) -> list[str]:
        return [self.program, verb, *words, *self.flags]

    def run(self, verb: str, *words: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(verb, *words),
            cwd=self.checkout,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


@pytest.fixture(scope="module")
def tilt(base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tilt]:
    program = shutil.which("tilt", path=f"{os.environ.get('PATH', '')}:{CACHE}")
    if program is None:
        pytest.skip("tilt is not installed")
    checkout = tmp_path_factory.mktemp(f"tilt-{secrets.token_hex(4)}")
    for name in COPIED:
        place = images.ROOT / name
        if place.is_dir():
            shutil.copytree(place, checkout / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, checkout / name)
    if base == images.DEBIAN:
        images.from_debian(images.PROMETHEUS, "prometheus", entrypoint="/usr/bin/prometheus")
    made = Tilt(program, checkout, ("--", "--no-registry") if base == images.DEBIAN else (), _environment())
    try:
        yield made
    finally:
        made.run("down", "--delete-volumes", seconds=UP_SECONDS)


def _environment() -> dict[str, str]:
    api, prometheus, grafana = free_ports(3)
    command = images.compose()
    return {
        **os.environ,
        # The example is run with the command line of this environment.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TIDEGATE_PORT": str(api),
        "PROMETHEUS_PORT": str(prometheus),
        "GRAFANA_PORT": str(grafana),
        "TIDEGATE_TOKEN": "tilt",
        "TIDEGATE_NATS_TOKEN": "tilt",
        "TILT_DISABLE_ANALYTICS": "1",
        **({"TILT_DOCKER_COMPOSE_CMD": command[0]} if len(command) == 1 else {}),
    }


def _eventually(holds: Callable[[], bool], seconds: float, said: Callable[[], str]) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not within {seconds:g} s: {said()[-3000:]}"
        time.sleep(0.1)


def test_ci_brings_everything_up_and_runs_a_job(tilt: Tilt) -> None:
    done = tilt.run("ci", *UNSEEN, "--timeout", "20m", seconds=CI_SECONDS)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "SUCCESS. All workloads are healthy." in done.stdout
    assert "job.batch.volcano.sh/ring-allreduce condition met" in done.stdout


def test_a_changed_file_is_in_the_running_service_in_seconds(tilt: Tilt, tmp_path: Path) -> None:
    log, marker = tmp_path / "tilt.log", f"changed {secrets.token_hex(4)}"
    file = tilt.checkout / CHANGED
    with process(tilt.command("up", *UNSEEN, "--stream"), log, tilt.environment, tilt.checkout):
        # Tilt is done with the service, which goes on as `tilt ci` left it.
        done = re.compile(rf"{SERVICE[:12]}\S* +│ +DONE IN")
        _eventually(lambda: done.search(log.read_text()) is not None, UP_SECONDS, log.read_text)
        container = _container(tilt)
        began = time.monotonic()
        file.write_text(f"print({marker!r}, flush=True)\n" + file.read_text())
        _eventually(lambda: marker in log.read_text(), RELOAD_SECONDS, log.read_text)
        print(f"in the running service after {time.monotonic() - began:.1f} s")
        assert _container(tilt) == container, "the container was made anew"


def _container(tilt: Tilt) -> str:
    """The id of the service's container."""
    found = images.docker("ps", "--quiet", "--filter", f"name={tilt.checkout.name}-{SERVICE}").split()
    assert len(found) == 1
    return found[0]
