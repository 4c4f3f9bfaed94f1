"""What every service has for those who run it: health, reflection, and figures."""

import re
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tidegate_system_gangs import clean, is_whole, ring

from tidegate.client import Denied, NotFound, SyncClient, TimedOut
from tidegate.services import SERVICES

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def measured(system_with) -> Iterator:
    """A system that has run a gang, with metrics."""
    with system_with("--metrics") as system:
        system.apply(ring("one"))
        system.finally_right(lambda: is_whole(system, ["one"]))
        yield system
        clean(system, ["one"])


def flag(system, service: str, name: str) -> str:
    """What the service was told on its command line."""
    words = system.processes()[system.pid(service)].split("\0")
    return words[words.index(name) + 1]


@pytest.mark.parametrize("service", SERVICES)
def test_it_says_that_it_serves_and_what_it_offers(measured, service: str) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{flag(measured, service, '--health-port')}") as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=30)
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([asked]), timeout=30)
    offered = {one.name for one in answer.list_services_response.service}
    assert {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= offered
    assert ("tidegate.api.v1.TidegateService" in offered) == (service == "admission")


FIGURES = {
    "cluster_gateway": ("commit_seconds_count", 'outcomes_total{applied="true",name="GangPlaced"}', "revision"),
    "admission": ("revision_seen", 'calls_total{code="OK",method="Apply"}', 'call_seconds_count{method="Apply"}'),
    "job_controller": ('decisions_total{name="PodsWanted"}', "decide_seconds_count", "revision"),
    "queue_manager": ('decisions_total{name="GroupAdmitted"}', "commit_seconds_count", "facts_total"),
    "gang_scheduler": ('decisions_total{name="GangPlaced"}', "decide_seconds_count", "commit_seconds_count"),
    "descheduler": ("facts_total", "revision"),
    "slo_controller": ("facts_total", "revision"),
    "inference_autoscaler": ("facts_total", "revision"),
    "inference_gateway": ("revision", "proxy_starts"),
    "node_agent": ("pods", 'calls_total{code="OK",method="Check"}'),
}


def figures(system, service: str) -> dict[str, float]:
    """What the service serves to Prometheus, without the common beginning of the names."""
    address = f"http://127.0.0.1:{flag(system, service, '--metrics-port')}/metrics"
    with urllib.request.urlopen(address, timeout=30) as page:
        text = page.read().decode()
    return {name: float(value) for name, value in re.findall(rf"^tidegate_{service}_(\S+) (\S+)$", text, re.M)}


@pytest.mark.parametrize("service", SERVICES)
def test_it_serves_figures_of_what_it_did(measured, service: str) -> None:
    found = figures(measured, service)
    zero = [name for name in FIGURES[service] if not found.get(name)]
    assert not zero, (zero, sorted(found))


def test_calls_are_counted_by_what_came_of_them(measured) -> None:
    with pytest.raises(NotFound):
        measured.client.get("pods", "nobody")
    with SyncClient(replace(measured.client.endpoint, token="wrong")) as stranger, pytest.raises(Denied):
        stranger.list("pods")
    with pytest.raises(TimedOut):
        list(measured.client.watch("pods", timeout_seconds=0.2))

    def counted() -> list[float]:
        calls = {
            name: count for name, count in figures(measured, "admission").items() if name.startswith("calls_total")
        }
        watches = sum(count for name, count in calls.items() if 'method="Watch"' in name)
        others = ('calls_total{code="NOT_FOUND",method="Get"}', 'calls_total{code="UNAUTHENTICATED",method="List"}')
        return [*(calls.get(name, 0) for name in others), watches]

    # The server hears a moment after the client that a watch has ended.
    measured.eventually(lambda: counted() == [1, 1, 1])
