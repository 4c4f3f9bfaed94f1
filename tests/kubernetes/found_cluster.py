"""A cluster for tests that need no more than one: that of TIDEGATE_KUBECONFIG, else the lab's, else K3s in a container.

KUBECONFIG alone is not taken: it is where people keep their clusters, and no test goes there unless it was told to.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab_programs import NoLab

ASKED_FOR = "TIDEGATE_KUBECONFIG"
K3S = "rancher/k3s"


class NoCluster(Exception):
    """There is none; the text says what was looked for."""


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster, and where it is from."""

    kubeconfig: Path
    source: str


@contextmanager
def found_cluster(folder: Path, lab: Callable[[], Path]) -> Iterator[Found]:
    """The cluster; files of its own go below ``folder``. ``lab`` makes the lab's, or raises NoLab. Raises NoCluster."""
    if named := os.environ.get(ASKED_FOR):
        if not Path(named).is_file():
            raise NoCluster(f"{ASKED_FOR} names {named}, which is no file")
        yield Found(Path(named), ASKED_FOR)
        return
    try:
        kubeconfig = lab()
    except NoLab as error:
        image = k3s_image()
        if not image:
            raise NoCluster(f"{ASKED_FOR} is not set; {error}; Docker has no image of {K3S}") from error
        with k3s(image, folder) as found:
            yield found
    else:
        yield Found(kubeconfig, "lab")


def k3s_image() -> str:
    """The newest image of K3s that Docker has here; "" where there is none."""
    command = ["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", K3S]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except OSError:
        return ""
    return next(iter(done.stdout.split()), "") if done.returncode == 0 else ""


@contextmanager
def k3s(image: str, folder: Path) -> Iterator[Found]:
    """K3s in a container, until the end."""
    from testcontainers.community.k3s import K3SContainer

    with K3SContainer(image) as container:
        kubeconfig = folder / "k3s-kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(container.config_yaml())
        yield Found(kubeconfig, K3S)
