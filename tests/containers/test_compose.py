"""The whole system of compose.yaml: it comes up, runs a job that is handed in from outside, and is seen by Prometheus."""

import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import images
import pytest
import yaml

from bus.server import free_ports
from tidegate.services import SERVICES

pytestmark = pytest.mark.timeout(1800)
ROOT = images.ROOT
DASHBOARD = ROOT / "deploy" / "dashboards" / "tidegate.json"
UP_SECONDS = 300.0


class Composed:
    """The system of compose.yaml under a name and on ports of its own. Without a registry there is no Grafana."""

    def __init__(self, name: str, registry: bool) -> None:
        files = ["compose.yaml"] if registry else ["compose.yaml", "deploy/compose/no-registry.yaml"]
        self._command = [*images.compose(), *(word for file in files for word in ("--file", file))]
        api, self.prometheus_port, grafana = free_ports(3)
        self.server, self.token = f"127.0.0.1:{api}", secrets.token_hex(20)
        self._environment = {
            **os.environ,
            "COMPOSE_PROJECT_NAME": name,
            "TIDEGATE_TOKEN": self.token,
            "TIDEGATE_NATS_TOKEN": secrets.token_hex(20),
            "TIDEGATE_PORT": str(api),
            "PROMETHEUS_PORT": str(self.prometheus_port),
            "GRAFANA_PORT": str(grafana),
        }

    def compose(self, *words: str, seconds: float = 60.0) -> str:
        """What `docker compose` prints."""
        return _output([*self._command, *words], self._environment, seconds)

    def tidegate(self, *words: str, seconds: float = 60.0) -> str:
        """What the command line on this machine prints, asking the system."""
        command = [sys.executable, "-m", "tidegate_cli.main", "--server", self.server, *words]
        return _output(command, {**os.environ, "TIDEGATE_TOKEN": self.token}, seconds)

    def asked(self, path: str, **query: str) -> Any:
        """An answer of Prometheus' API."""
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.loads(answer.read())["data"]


def _output(command: list[str], environment: dict[str, str], seconds: float) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def composed(built: dict[str, str], base: str) -> Iterator[Composed]:
    """All of it, up and healthy; nothing of it is left."""
    from daemon import NoDocker

    try:
        system = Composed(f"tidegate-test-{secrets.token_hex(4)}", registry=base != images.DEBIAN)
        if base == images.DEBIAN:
            images.from_debian(images.PROMETHEUS, "prometheus", entrypoint="/usr/bin/prometheus")
    except NoDocker as error:
        pytest.skip(str(error))
    try:
        system.compose("up", "--detach", "--wait", "--no-build", seconds=UP_SECONDS)
        yield system
    finally:
        system.compose("down", "--volumes", "--timeout", "45", seconds=UP_SECONDS)


def _eventually(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.5)
    return found


def test_the_images_of_the_files_are_of_this_version() -> None:
    """One number for all: nobody runs an older image beside a newer chart."""
    for service in yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values():
        if service["image"].startswith("tidegate/"):
            assert service["image"].endswith(f":{images.VERSION}")


def test_a_job_from_outside_runs_to_its_end(composed: Composed) -> None:
    """Four pods that compute together, with what they run in a ConfigMap and each other's names in a file."""
    composed.tidegate("apply", "-f", "examples/ring-allreduce.yaml")
    composed.tidegate("wait", "job/ring-allreduce", "--for=phase=Completed", "--timeout", "90s", seconds=120)
    said = composed.tidegate("logs", "ring-allreduce-master-0", "--tail", "1")
    assert re.search(r"checked: sum .* over 4 ranks", said), said


def test_pods_of_the_node_have_users_files_and_limits_of_their_own(composed: Composed) -> None:
    """The node's container is privileged for nothing else."""
    node = json.loads(composed.tidegate("get", "node", "node", "-o", "json"))
    found = node["metadata"]["annotations"]["tidegate.dev/isolation"]
    assert "none" not in found, found


def test_who_has_no_token_is_not_let_in(composed: Composed) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tidegate_cli.main", "--server", composed.server, "--token", "wrong", "get", "pods"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1 and "token" in done.stderr


def test_prometheus_reads_every_service(composed: Composed) -> None:
    targets = _eventually(lambda: [one for one in composed.asked("targets")["activeTargets"] if one["lastScrape"]])
    _eventually(lambda: all(one["health"] == "up" for one in composed.asked("targets")["activeTargets"]))
    assert len(targets) == len(SERVICES)


def test_services_that_no_job_needs_decide_too(composed: Composed, tmp_path: Path) -> None:
    """Rules of nodes, a size that is not known yet, and a move of nobody: what the dashboard shows of them comes from here."""
    (tmp_path / "others.yaml").write_text(OTHERS)
    composed.tidegate("apply", "-f", str(tmp_path / "others.yaml"))
    kinds = {"nodeslos": "node", "horizontalpodautoscalers": "web", "podmigrationjobs": "nobody"}
    for kind, name in kinds.items():
        _eventually(lambda kind=kind, name=name: name in composed.tidegate("get", kind))
    _eventually(lambda: "Failed" in composed.tidegate("get", "podmigrationjob", "nobody", "-o", "json"))


OTHERS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data: {resource-threshold-config: '{"clusterStrategy": {"enable": true}}'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: busybox, command: [sleep, "600"], resources: {requests: {cpu: 100m}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: PodMigrationJob
metadata: {name: nobody}
spec: {podRef: {namespace: default, name: nobody}}
"""
QUIET = ("Refused decisions", "Calls that were refused or failed")
"""Panels that show nothing while all is well."""


def _expressions() -> list[tuple[str, str]]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]


@pytest.mark.parametrize(("title", "expression"), _expressions())
def test_every_panel_of_the_dashboard_has_something_to_show(composed: Composed, title: str, expression: str) -> None:
    query = expression.replace("$__rate_interval", "5m")
    assert _eventually(lambda: composed.asked("query", query=query)["result"] or title in QUIET)


def test_objects_outlive_the_containers(composed: Composed) -> None:
    """`down` and `up`: the volumes have what is so and what was decided."""
    composed.compose("down", "--timeout", "45", seconds=UP_SECONDS)
    composed.compose("up", "--detach", "--wait", "--no-build", seconds=UP_SECONDS)
    assert "Completed" in composed.tidegate("get", "job", "ring-allreduce")
