"""The Tiltfile, by compose: `tilt ci` brings the system up and runs a job, and a changed file is in a running service in seconds."""

import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import images
import pytest
from daemon import NoDocker
from tilt_tools import Tilt, checked_out, eventually

from bus.server import free_ports

pytestmark = pytest.mark.timeout(1800)
CI_SECONDS, UP_SECONDS = 1200.0, 300.0
RELOAD_SECONDS = 30.0
"""On a busy machine of two cores; docs/containers.md says what it takes on a quiet one."""
SERVICE, CHANGED = "job-controller", "services/job_controller/src/job_controller/main.py"


@pytest.fixture(scope="module")
def tilt(base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tilt]:
    """With containers, volumes and ports that are nobody else's."""
    api, prometheus, grafana = free_ports(3)
    variables = {
        "TIDEGATE_PORT": str(api),
        "PROMETHEUS_PORT": str(prometheus),
        "GRAFANA_PORT": str(grafana),
        "TIDEGATE_TOKEN": "tilt",
        "TIDEGATE_NATS_TOKEN": "tilt",
    }
    try:
        command = images.compose()
        if len(command) == 1:
            variables["TILT_DOCKER_COMPOSE_CMD"] = command[0]
        made = checked_out(tmp_path_factory.mktemp(f"tilt-{secrets.token_hex(4)}"), base, (), variables)
        if base == images.DEBIAN:
            images.from_debian(images.PROMETHEUS, "prometheus", entrypoint="/usr/bin/prometheus")
    except NoDocker as error:
        pytest.skip(str(error))
    try:
        yield made
    finally:
        made.down(UP_SECONDS)


def test_ci_brings_everything_up_and_runs_a_job(tilt: Tilt) -> None:
    done = tilt.ci(CI_SECONDS)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "SUCCESS. All workloads are healthy." in done.stdout
    assert "job.batch.volcano.sh/ring-allreduce condition met" in done.stdout


def test_a_changed_file_is_in_the_running_service_in_seconds(tilt: Tilt, tmp_path: Path) -> None:
    log = tmp_path / "tilt.log"
    with tilt.up(log):
        # Tilt is done with the service, which goes on as `tilt ci` left it.
        done = re.compile(rf"{SERVICE[:12]}\S* +│ +DONE IN")
        eventually(lambda: done.search(log.read_text()) is not None, UP_SECONDS, log.read_text)
        container = _container(tilt)
        took = _shown_after(tilt, log)
        print(f"in the running service after {took:.1f} s")
        assert _container(tilt) == container, "the container was made anew"


def _shown_after(tilt: Tilt, log: Path) -> float:
    """Seconds until a change is in the running service. On a busy machine Tilt may begin to look at files later than it says so."""
    began = time.monotonic()
    marker = tilt.mark(CHANGED)
    try:
        eventually(lambda: marker in log.read_text(), RELOAD_SECONDS, log.read_text)
    except AssertionError:
        began, marker = time.monotonic(), tilt.mark(CHANGED)
        eventually(lambda: marker in log.read_text(), RELOAD_SECONDS, log.read_text)
    return time.monotonic() - began


def _container(tilt: Tilt) -> str:
    """The id of the service's container."""
    found = images.docker("ps", "--quiet", "--filter", f"name={tilt.checkout.name}-{SERVICE}").split()
    assert len(found) == 1
    return found[0]
