"""The Tiltfile, by the charts: on a real node `tilt ci` comes up, and a changed file is in a running pod in seconds.

No registry is needed: images are built here and taken in by the node's containerd.
"""

import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import images
import pytest
from cluster_tools import DEFINITIONS
from daemon import NoDocker, daemon
from helm_tools import NAMESPACE, SERVICE_CHARTS
from lab_programs import programs
from real_node import RealNode
from tilt_tools import Tilt, checked_out, eventually

pytestmark = pytest.mark.timeout(1800)
CI_SECONDS, UP_SECONDS, RELOAD_SECONDS = 1200.0, 300.0, 30.0
CHANGED = "services/job_controller/src/job_controller/main.py"


@pytest.fixture(scope="module")
def tilt(node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tilt]:
    folder = tmp_path_factory.mktemp("tilt-kubernetes")
    (folder / "bin").mkdir()
    (folder / "bin" / "helm").symlink_to(programs("helm")["helm"])
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}"
    taken_in = shlex.join([*node.within, str(node.programs["ctr"]), "-a", "/run/containerd/containerd.sock"])
    flags = ("--kubernetes", "--import", f"{taken_in} -n k8s.io images import -")
    try:
        with daemon():
            base = images.base()
            variables = {"KUBECONFIG": str(node.plane.kubeconfig)}
            variables |= {} if images.has_plugin("buildx") else {"DOCKER_BUILDKIT": "0"}
            (folder / "checkout").mkdir()
            made = checked_out(folder / "checkout", base, flags, variables)
            made.environment["PATH"] = f"{path}:{made.environment['PATH']}"
            try:
                yield made
            finally:
                made.down(UP_SECONDS)
    except NoDocker as error:
        pytest.skip(str(error))


def test_ci_brings_all_charts_up(tilt: Tilt, node: RealNode) -> None:
    done = tilt.ci(CI_SECONDS)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "SUCCESS. All workloads are healthy." in done.stdout
    pods = node.plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    charts = {pod["metadata"]["labels"].get("app.kubernetes.io/name") for pod in pods}
    assert charts >= {"nats", *SERVICE_CHARTS} - {"node-agent"}
    assert node.plane.request("GET", f"{DEFINITIONS}/jobs.batch.volcano.sh")["spec"]


def test_a_changed_file_is_in_the_running_pod_in_seconds(tilt: Tilt, tmp_path: Path) -> None:
    log = tmp_path / "tilt.log"
    with tilt.up(log):
        eventually(lambda: _is_watched(log.read_text()), UP_SECONDS, log.read_text)
        began = time.monotonic()
        marker = tilt.mark(CHANGED)
        eventually(lambda: marker in log.read_text(), RELOAD_SECONDS, log.read_text)
        print(f"in the running pod after {time.monotonic() - began:.1f} s")


def _is_watched(said: str) -> bool:
    """Whether Tilt has brought the service up, or has found it as it should be, and shows what it says."""
    return any(line.startswith("tidegate-job") and '"event": "ready"' in line for line in said.splitlines())
