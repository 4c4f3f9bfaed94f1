"""Every matcher of ``expect``: when it holds, and what it says when it does not."""

from collections.abc import Callable
from typing import Any

import pytest

from testing.scenarios.run import Result

NODES = {"nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 4, "memory": "8Gi"}, "labels": {"rack": "r{i}"}}]}
PODS = {
    "apply": [
        {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3, "queue": "q"}},
        {
            "kind": "Pod",
            "metadata": {"name": "w-{i}"},
            "labels": {"app": "w"},
            "podGroup": "g",
            "requests": {"cpu": 2},
            "count": 3,
        },
        {"kind": "Pod", "metadata": {"name": "big"}, "requests": {"cpu": 5}},
        {"kind": "Pod", "metadata": {"name": "far", "namespace": "lab"}, "queue": "other", "requests": {"cpu": 1}},
    ]
}
OBJECTS = {
    "apply": [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"a/b": "x"}},
            "spec": {"replicas": 3, "cpu": "1500m", "list": [{"type": "A", "status": "True"}], "note": "slots=4\nend"},
        },
        {"kind": "InferenceService", "metadata": {"name": "m"}, "spec": {"traffic": {"m-1": 80, "m-2": 20, "m-0": 0}}},
    ]
}

HOLDS = [
    {"pods": {"w-0": {"node": "n-0", "phase": "Running", "ready": True, "exists": True}}},
    {"pods": {"w-2": {"node": ["n-0", "n-1"]}, "big": {"node": None, "phase": "Pending", "ready": False}}},
    {"pods": {"big": {"message": "NO NODE has room"}, "ghost": {"exists": False}, "lab/far": {"node": "n-1"}}},
    {"count": [{"all": True, "exists": 5, "bound": 4, "pending": 1, "running": {"min": 1, "max": 4}}]},
    {
        "count": [
            {"podGroup": "g", "bound": 3},
            {"podGroup": "default/g", "bound": 3},
            {"podGroup": "lab/g", "exists": 0},
        ]
    },
    {"count": [{"queue": "q", "bound": 3}, {"queue": "other", "bound": 1}, {"queue": "default", "exists": 1}]},
    {"count": [{"namespace": "lab", "exists": 1}, {"labels": {"app": "w"}, "namespace": "default", "exists": 3}]},
    {"count": [{"pods": ["w-0", "lab/far"], "bound": 2}, {"labels": {"app": "w"}, "nodes": 2, "maxPerNode": 2}]},
    {
        "count": [
            {"podGroup": "g", "domains": {"key": "rack", "n": 2}, "perNode": {"n-0": 2, "n-1": {"max": 1}, "n-9": 0}}
        ]
    },
    {"evictedCount": 0, "notEvicted": ["w-0", "lab/far"]},
    {
        "object": [
            {
                "ref": "Deployment/web",
                "path": "spec.cpu",
                "equals": 1.5,
                "min": 1,
                "max": "2",
                "approx": {"value": 1, "tolerance": 0.5},
            }
        ]
    },
    {"object": [{"ref": "Deployment/web", "path": "spec.cpu", "equals": 1.5}]},
    {"object": [{"ref": "Deployment/web", "path": 'metadata.labels["a/b"]', "equals": ["y", "x"], "exists": True}]},
    {"object": [{"ref": "Deployment/web", "path": "spec.list", "contains": {"type": "A", "status": "True"}}]},
    {"object": [{"ref": "Deployment/web", "path": "spec.note", "contains": "slots=4\nend"}]},
    {"object": [{"ref": "Deployment/web", "path": "metadata.creationTimestamp", "equals": "2026-01-01T00:00:00Z"}]},
    {"object": [{"ref": "Deployment/gone", "path": "metadata.name", "exists": False}]},
    {"replicas": {"Deployment/web": 3}},
    {"traffic": {"InferenceService/m": {"m-1": 80, "m-2": 20}}},
    {"cgroup": [{"node": "n-0", "path": "kubepods/cpu.max", "equals": "max 100000"}]},
]

DIFFERS = [
    ({"pods": {"w-0": {"node": "n-1"}}}, "pods.w-0.node", "n-1", "n-0"),
    ({"pods": {"big": {"node": "n-1"}}}, "pods.big.node", "n-1", "nothing"),
    ({"pods": {"ghost": {"node": None}}}, "pods.ghost.exists", "true", "false"),
    ({"pods": {"w-0": {"exists": False}}}, "pods.w-0.exists", "false", "true"),
    ({"pods": {"lab/far": {"phase": "Failed"}}}, "pods.lab/far.phase", "Failed", "Running"),
    (
        {"pods": {"big": {"message": "quota"}}},
        "pods.big.message",
        "one with 'quota'",
        "no node has room for big, Pending",
    ),
    ({"count": [{"podGroup": "g", "bound": 2}]}, "count (podGroup g) bound", "2", "3 of 3 (w-0, w-1, w-2)"),
    ({"count": [{"all": True, "pending": {"min": 2}}]}, "count (all) pending", "at least 2", "1 of 5 (big)"),
    ({"count": [{"podGroup": "g", "nodes": 1}]}, "count (podGroup g) nodes", "1", "2 (n-0, n-1)"),
    (
        {"count": [{"podGroup": "g", "domains": {"key": "rack", "n": 1}}]},
        "count (podGroup g) domains rack",
        "1",
        "2 (r0, r1)",
    ),
    ({"count": [{"podGroup": "g", "maxPerNode": 1}]}, "count (podGroup g) maxPerNode", "at most 1", "2 on n-0"),
    ({"count": [{"labels": {"app": "w"}, "perNode": {"n-0": 1}}]}, "count (labels app=w) perNode n-0", "1", "2"),
    ({"evicted": ["w-0"]}, "evicted", "w-0", "evicted: none"),
    ({"evictedCount": {"min": 1}}, "evictedCount", "at least 1", "0"),
    (
        {"object": [{"ref": "Deployment/web", "path": "spec.cpu", "equals": 2}]},
        "object Deployment/web spec.cpu",
        "2",
        "1500m",
    ),
    (
        {"object": [{"ref": "Deployment/web", "path": "spec.cpu", "min": 2}]},
        "object Deployment/web spec.cpu",
        "at least 2",
        "1500m",
    ),
    (
        {"object": [{"ref": "Deployment/gone", "path": "spec", "exists": True}]},
        "object Deployment/gone spec",
        "something",
        "no such object",
    ),
    ({"replicas": {"Deployment/web": {"max": 2}}}, "replicas Deployment/web", "at most 2", "3"),
    ({"replicas": {"Deployment/gone": 1}}, "replicas Deployment/gone", "1", "nothing"),
    (
        {"traffic": {"InferenceService/m": {"m-1": 80}}},
        "traffic InferenceService/m",
        "{'m-1': 80}",
        "{'m-0': 0, 'm-1': 80, 'm-2': 20}",
    ),
    (
        {"cgroup": [{"node": "n-0", "path": "kubepods/cpu.max", "equals": "1 2"}]},
        "cgroup n-0 kubepods/cpu.max",
        "1 2",
        "max 100000",
    ),
    ({"cgroup": [{"node": "n-1", "path": "x", "equals": "1"}]}, "cgroup n-1 x", "1", "no such file"),
]


def _run(run: Callable[..., Result], expect: dict[str, Any]) -> Result:
    files = {("n-0", "kubepods/cpu.max"): "max 100000\n"}
    return run(NODES, PODS, OBJECTS, {"expect": expect}, files=files)


@pytest.mark.parametrize("expect", HOLDS, ids=lambda expect: "+".join(expect))
def test_a_matcher_that_holds_lets_the_scenario_pass(run: Callable[..., Result], expect: dict[str, Any]) -> None:
    assert _run(run, expect) == Result("gang", "s", True)


@pytest.mark.parametrize(("expect", "matcher", "wanted", "got"), DIFFERS, ids=lambda value: str(value)[:40])
def test_a_matcher_that_does_not_hold_says_what_is_there(
    run: Callable[..., Result], expect: dict[str, Any], matcher: str, wanted: str, got: str
) -> None:
    assert _run(run, expect) == Result("gang", "s", False, 4, matcher, wanted, got)


def test_evictions_are_counted_when_they_are_ordered(run: Callable[..., Result]) -> None:
    doomed = {"apply": [{"kind": "Pod", "metadata": {"name": "d-{i}"}, "labels": {"evict": "yes"}, "count": 2}]}
    assert run(doomed, {"expect": {"evicted": ["d-0", "d-1"], "evictedCount": 2, "notEvicted": ["other"]}}).passed
    result = run(doomed, {"expect": {"notEvicted": ["d-1"]}})
    assert (result.matcher, result.wanted, result.got) == ("notEvicted", "d-1", "evicted: d-0, d-1")


def test_a_finished_pod_is_bound_and_not_pending(run: Callable[..., Result]) -> None:
    """It keeps its node: counted as succeeded or failed, and as bound, as the format says of pods with a node."""
    count = [{"podGroup": "g", "bound": 3, "pending": 0, "running": 1, "succeeded": 1, "failed": 1}]
    phases = {"podPhase": {"w-0": "Succeeded", "w-1": {"phase": "Failed", "exitCode": 1}}}
    assert run(NODES, PODS, phases, {"expect": {"count": count}}).passed


def test_the_environment_of_a_pod_is_matched_as_text_or_as_json(run: Callable[..., Result]) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "J", "value": '{"task": {"index": 2}, "hosts": ["x:1"]}'}]
    containers = [{"name": "c", "image": "i", "env": env}]
    pod = {
        "apply": [{"kind": "Pod", "metadata": {"name": "p"}, "labels": {"a": "b"}, "spec": {"containers": containers}}]
    }
    expect = [
        {"pod": "p", "name": "A", "equals": "1"},
        {"pod": "p", "name": "B", "exists": False},
        {"select": {"labels": {"a": "b"}}, "take": 1, "name": "J", "contains": "hosts"},
        {"pod": "p", "name": "J", "json": {"path": "task.index", "equals": 2}},
        {"pod": "p", "name": "J", "json": {"path": "hosts[0]", "equals": "x:1"}},
    ]
    assert run(pod, {"expect": {"env": expect}}).passed
    result = run(pod, {"expect": {"env": [{"pod": "p", "name": "A", "equals": "2"}]}})
    assert (result.matcher, result.wanted, result.got) == ("env p A", "2", "1")
    result = run(pod, {"expect": {"env": [{"pod": "q", "name": "A", "equals": "2"}]}})
    assert (result.matcher, result.got) == ("env (pod q) A", "no such pod")


def test_pods_are_selected_by_the_job_and_the_owner_that_made_them(run: Callable[..., Result]) -> None:
    steps = [
        NODES,
        {"apply": [{"kind": "Job", "metadata": {"name": "j"}, "spec": {}}]},
        {"apply": [{"kind": "Pod", "metadata": {"name": "j-0"}, "owner": "Job/j", "requests": {"cpu": 1}}]},
        {"apply": [{"kind": "Pod", "metadata": {"name": "k-0"}, "labels": {"training.kubeflow.org/job-name": "k"}}]},
        {"expect": {"count": [{"job": "j", "bound": 1}, {"owner": "Job/j", "bound": 1}, {"job": "k", "exists": 1}]}},
    ]
    assert run(*steps).passed
