"""Tidegate on a control plane: installed, started, and waited for."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from control_plane import ControlPlane, node

from admission.domain.definitions import DEFINED, definition
from bus.server import free_port
from kube import KINDS

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENT_SECONDS = 90.0
"""How long is waited for what takes seconds on a machine with nothing else to do."""


def install(plane: ControlPlane, nodes: int = 20) -> None:
    """Our definitions, and so many nodes that kwok plays."""
    for number in range(nodes):
        plane.request("POST", "/api/v1/nodes", node(f"n{number:03}", gpus=8))
    define(plane, DEFINED)


def define(plane: ControlPlane, kinds: Iterable[str]) -> None:
    """Our definitions of these kinds; returns when they are served."""
    for kind in kinds:
        plane.request("POST", DEFINITIONS, definition(kind))
    eventually(lambda: all(_served(plane, kind) for kind in kinds))


def _served(plane: ControlPlane, kind: str) -> bool:
    """Whether its objects can be listed: that follows a moment after its definition says that it is established."""
    info = KINDS[kind]
    status = plane.request("GET", f"{DEFINITIONS}/{info.plural}.{info.group}").get("status") or {}
    if not any(one["type"] == "Established" and one["status"] == "True" for one in status.get("conditions") or ()):
        return False
    try:
        plane.request("GET", f"/apis/{info.api_version}/{info.plural}?limit=1")
    except HTTPError as error:
        if error.code != 404:
            raise
        return False
    return True


def eventually(holds: Callable[[], Any], seconds: float = PATIENT_SECONDS) -> Any:
    """What ``holds`` returns once that is true. Raises AssertionError when it does not come to be."""
    until = time.monotonic() + seconds
    while True:
        if found := holds():
            return found
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.05)


@contextmanager
def running_system(
    plane: ControlPlane,
    folder: Path,
    inside: Sequence[str] = (),
    kubeconfig: Path | None = None,
    schedulers: str = "tidegate,volcano",
    settings: Sequence[str] = (),
) -> Iterator[Path]:
    """All services as processes, driving the cluster, until the end; the data folder.

    ``inside`` begins a command in the network that the API server is in, where that is another than ours. The services reach
    the API server by ``kubeconfig``, or as an administrator does. ``schedulers`` are whose pods they place, ``settings`` are
    those of single services.
    """
    words = [word for setting in settings for word in ("--set", setting)]
    # Another system of this machine may be about to take the usual port.
    words += ["--scheduler-names", schedulers, "--webhook-url", f"https://127.0.0.1:{free_port()}"]
    try:
        with running_services(kubeconfig or plane.kubeconfig, folder, words, inside) as data:
            yield data
    finally:
        for plural in ("mutating", "validating"):
            with suppress(HTTPError):
                plane.request("DELETE", f"{REGISTRATION}/{plural}webhookconfigurations/tidegate-admission")
        with suppress(HTTPError):
            plane.request("DELETE", "/api/v1/namespaces/tidegate-system/secrets/tidegate-admission-tls")


@contextmanager
def running_services(
    kubeconfig: Path, folder: Path, words: Sequence[str] = (), inside: Sequence[str] = ()
) -> Iterator[Path]:
    """The services as processes against the cluster of ``kubeconfig``, started with ``words``, until the end; the data folder."""
    data, log = folder / "data", folder / "up.log"
    folder.mkdir(exist_ok=True)
    command = [*inside, sys.executable, "-m", "tidegate_cli.main", "up", "--data-dir", str(data)]
    command += ["--kubeconfig", str(kubeconfig), "--port", str(free_port()), *words]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        eventually(lambda: "ready at" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield data
    finally:
        process.terminate()
        process.wait(30)
