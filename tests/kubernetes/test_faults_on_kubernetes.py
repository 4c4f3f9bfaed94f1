"""What the cluster around the services does wrong while gangs start: no pod is on two nodes, no gang half, no decision lost.

Times are shortened: what lasts for minutes in earnest lasts for seconds here, but where TIDEGATE_LAB=all asks for all of it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_tools import DEFINITIONS, define, eventually, running_system
from control_plane import ControlPlane
from fault_proxy import FaultProxy, fault_proxy
from gang_runs import NAMESPACE, all_decided, child, command_of, environment_of, gangs, log_of

from kube import KINDS

GROUP = "PodGroup.scheduling.volcano.sh"
AWAY_SECONDS, AWAY_FOR_LONG_SECONDS = 10.0, 90.0
asked_for = pytest.mark.skipif(
    os.environ.get("TIDEGATE_LAB") not in ("all", "build"),
    reason="the API server is away for more than a minute; TIDEGATE_LAB=all waits for it",
)
TEN_MINUTES_MS = 600_000


@pytest.fixture(scope="module")
def proxy(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    with fault_proxy(plane, tmp_path_factory.mktemp("proxy")) as made:
        yield made


@pytest.fixture(scope="module")
def services(plane: ControlPlane, proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services, behind the proxy, for the tests of this file together."""
    folder = tmp_path_factory.mktemp("faults")
    with running_system(plane, folder, kubeconfig=proxy.kubeconfig) as data:
        yield data


@pytest.fixture
def decided(services: Path) -> Iterator[None]:
    """At the end every decision has one outcome."""
    yield
    all_decided(services)


pytestmark = [pytest.mark.usefixtures("decided"), pytest.mark.timeout(300)]


def test_etcd_is_killed(plane: ControlPlane, services: Path) -> None:
    with gangs(plane, "etcd") as made:
        made.begun()

        plane.kill("etcd")
        time.sleep(1.0)
        plane.start_again("etcd")

        made.whole()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The process stands still."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_api_server_does_not_answer_for_long(plane: ControlPlane, services: Path) -> None:
    with gangs(plane, "silent") as made:
        made.begun()

        with stopped(plane.processes["kube-apiserver"].pid):
            time.sleep(AWAY_SECONDS)

        made.whole()


@pytest.mark.parametrize("seconds", [AWAY_SECONDS, pytest.param(AWAY_FOR_LONG_SECONDS, marks=asked_for)])
def test_the_api_server_is_away_for_long(plane: ControlPlane, services: Path, seconds: float) -> None:
    before = log_of(services, "cluster_gateway")
    with gangs(plane, f"away{seconds:g}x") as made:
        made.begun()

        plane.kill("kube-apiserver")
        time.sleep(seconds)
        plane.start_again("kube-apiserver")
        plane.wait_ready()

        made.whole()
    told = log_of(services, "cluster_gateway").removeprefix(before)
    assert '"event": "watch_broken"' in told
    assert '"event": "kind_gone"' not in told


def test_the_api_server_is_slow_overloaded_and_broken(plane: ControlPlane, proxy: FaultProxy, services: Path) -> None:
    before = log_of(services, "cluster_gateway")
    faults = [
        proxy.add("POST .*/binding", times=6, code=429, retry_after=1),
        proxy.add("POST .*/pods", times=6, code=500, message="etcdserver: request timed out"),
        proxy.add("POST .*/binding", times=6, is_lost=True),
        proxy.add("PATCH .*/status", times=6, code=503),
        proxy.add("POST .*/binding", times=4, is_reset=True),
        proxy.add("POST .*/binding", times=4, seconds=5.0),
        proxy.add("POST .*/pods", times=6, is_lost=True),
    ]
    try:
        with gangs(plane, "slow") as made:
            made.begun()
            proxy.cut_watches()

            made.whole()
            assert all(fault.met for fault in faults)
    finally:
        proxy.faults.clear()
    told = log_of(services, "cluster_gateway").removeprefix(before)
    assert '"event": "request_delayed"' in told and '"event": "server_unreachable"' in told


@contextmanager
def standby(data: Path, name: str, clock_ms: int = 0) -> Iterator["subprocess.Popen[bytes]"]:
    """One more process of a service, whose clock is ``clock_ms`` ahead."""
    pid = child(data, name)
    command, environment = command_of(pid), environment_of(pid)
    command[command.index("--health-port") + 1] = "0"
    environment["TIDEGATE_CLOCK_BASE_MS"] = str(int(environment["TIDEGATE_CLOCK_BASE_MS"]) + clock_ms)
    with (data / "logs" / f"{name}-standby.log").open("ab") as output:
        process = subprocess.Popen([*command, "--holder", "standby"], env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def leads(data: Path, name: str) -> Callable[[], bool]:
    """Whether the standby has begun to work."""
    return lambda: '"event": "ready"' in log_of(data, f"{name}-standby")


def test_of_two_gateways_one_writes_and_the_other_takes_over(plane: ControlPlane, services: Path) -> None:
    first = child(services, "cluster_gateway")
    with standby(services, "cluster_gateway"), gangs(plane, "two") as made:
        made.begun()
        assert not leads(services, "cluster_gateway")()
        with stopped(first):
            eventually(leads(services, "cluster_gateway"))
            made.whole()
        _ends_or_waits(services, first)
        with gangs(plane, "more", count=3) as more:
            more.whole()
    with gangs(plane, "after", count=3) as last:
        last.whole()


def _ends_or_waits(data: Path, pid: int) -> None:
    """A gateway that was stopped while another took over finds out: it ends, or waits for the lease again."""
    eventually(
        lambda: child(data, "cluster_gateway") != pid or '"event": "lease_lost"' in log_of(data, "cluster_gateway")
    )


def test_clocks_that_are_wrong_change_nothing(plane: ControlPlane, services: Path) -> None:
    """Another scheduler, whose clock is ten minutes ahead, and another gateway, ten minutes behind, take over."""
    names = ("gang_scheduler", "cluster_gateway")
    pids = [child(services, name) for name in names]
    for name in names:
        (services / "logs" / f"{name}-standby.log").unlink(missing_ok=True)
    with (
        standby(services, names[0], TEN_MINUTES_MS),
        standby(services, names[1], -TEN_MINUTES_MS),
        stopped(pids[0]),
        stopped(pids[1]),
    ):
        for name in names:
            eventually(leads(services, name))
        with gangs(plane, "skewed") as made:
            made.whole()
    with gangs(plane, "again", count=3) as last:
        last.whole()


def test_a_definition_that_is_missing_is_told_and_made_up_for(plane: ControlPlane, services: Path) -> None:
    info = KINDS[GROUP]
    plane.request("DELETE", f"{DEFINITIONS}/{info.plural}.{info.group}")
    eventually(lambda: '"event": "kind_gone", "kind": "PodGroup' in log_of(services, "cluster_gateway"))
    with gangs(plane, "undefined", count=2) as made:
        told = eventually(lambda: _told(plane, "CustomResourceDefinition is missing"))
        assert "PodGroup" in told
        assert not made.bound()

        define(plane, (GROUP,))

        made.whole()


def _told(plane: ControlPlane, words: str) -> str:
    events = plane.request("GET", f"{NAMESPACE}/events")["items"]
    return next((str(event["message"]) for event in events if words in str(event["message"])), "")
