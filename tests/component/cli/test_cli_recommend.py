"""Recommendations on the command line: listed, and written into a workload by who may do that."""

import json
import re
from typing import Any

import pytest

API = {"apiVersion": "analysis.koordinator.sh/v1alpha1", "kind": "Recommendation"}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def recommendation(target: dict[str, Any], *containers: str) -> dict[str, Any]:
    told = [{"containerName": name, "resources": {"cpu": "500m", "memory": "2Gi"}} for name in containers]
    status = {
        "podStatus": {"containerStatuses": told},
        "conditions": [{"type": "RecommendationProvided", "status": "True", "reason": "Confident", "message": "words"}],
    }
    metadata = {"name": "web", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**API, "metadata": metadata, "spec": {"target": target}, "status": status}


@pytest.fixture
def deployment(server: Any) -> None:
    """One that asks for more than it uses, and is limited to twice of that."""
    containers = [
        {"name": "side"},
        {"name": "main", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4", "memory": "8Gi"}}},
    ]
    spec = {"template": {"spec": {"containers": containers}}}
    server.put({**DEPLOYMENT, "name": None, "metadata": {"name": "web", "namespace": "default"}, "spec": spec})


def test_they_are_listed_with_what_they_say(tidegate: Any, server: Any) -> None:
    server.put(recommendation({"workload": DEPLOYMENT}, "main"))
    out = tidegate("get", "recommendations").out
    assert re.search(r"NAME +TARGET +CPU +MEMORY +CONFIDENCE +AGE", out)
    assert re.search(r"web +deployment/web +500m +2Gi +Confident", out)
    server.put(recommendation({"podSelector": {"matchLabels": {"app": "web"}}}, "main", "side"))
    assert re.search(r"web +app=web +main=500m,side=500m", tidegate("get", "recommendations").out)


def test_one_is_written_into_its_workload_with_limits_in_proportion(
    tidegate: Any, server: Any, deployment: None
) -> None:
    server.put(recommendation({"workload": DEPLOYMENT}, "main", "gone"))
    ended = tidegate("recommend", "web")
    assert ended.out == "web: main cpu 2 → 500m, memory none → 2Gi\n"
    (request,) = server.asked["Patch"]
    assert (request.name.kind, request.name.name) == ("Deployment.apps", "web")
    path = "/spec/template/spec/containers/1"
    assert json.loads(request.patch) == [
        {"op": "test", "path": f"{path}/name", "value": "main"},
        {
            "op": "add",
            "path": f"{path}/resources",
            "value": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
        },
    ]


def test_what_is_so_already_is_no_change(tidegate: Any, server: Any, deployment: None) -> None:
    server.put(recommendation({"workload": DEPLOYMENT}, "gone"))
    assert "asks for what is recommended already" in tidegate("recommend", "web").out


@pytest.mark.parametrize(
    ("target", "containers", "words"),
    [
        ({"workload": DEPLOYMENT}, (), "says nothing yet: words"),
        ({"podSelector": {}}, ("main",), "by their labels"),
        ({"workload": {"apiVersion": "x.io/v1", "kind": "Thing", "name": "t"}}, ("main",), "is not a kind"),
    ],
)
def test_what_cannot_be_written_is_said(
    tidegate: Any, server: Any, target: dict[str, Any], containers: tuple[str, ...], words: str
) -> None:
    server.put(recommendation(target, *containers))
    ended = tidegate("recommend", "web")
    assert ended.code == 1 and words in ended.err
