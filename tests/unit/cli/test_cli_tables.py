"""What ``tidegate get`` prints."""

import json
from typing import Any

import pytest
import yaml

from kube import KINDS, Manifest, parse_time
from tidegate_cli.cells import dig, pod_status, since, span
from tidegate_cli.columns import COLUMNS
from tidegate_cli.tables import UnknownOutput, render

NOW = parse_time("2026-01-01T01:00:00Z")
POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "namespace": "lab",
        "labels": {"app": "web"},
        "creationTimestamp": "2026-01-01T00:55:00Z",
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [{"name": "c", "ready": True, "restartCount": 2}],
    },
}
JOB: Manifest = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default", "creationTimestamp": "2025-12-31T22:00:00Z"},
    "spec": {"minAvailable": 3, "queue": "q"},
    "status": {"state": {"phase": "Running"}, "running": 3},
}


def object_of(kind: str, **parts: Any) -> Manifest:
    info = KINDS[kind]
    metadata = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata, **parts}


def test_pods_are_printed_as_kubectl_prints_them() -> None:
    assert render([POD], NOW).splitlines() == [
        "NAME    READY   STATUS    RESTARTS   AGE",
        "web-0   1/1     Running   2          5m",
    ]


def test_wide_tables_namespaces_and_labels_add_columns() -> None:
    assert render([POD], NOW, output="wide", all_namespaces=True, show_labels=True).splitlines() == [
        "NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE   IP         NODE   NOMINATED NODE   LABELS",
        "lab         web-0   1/1     Running   2          5m    10.0.0.1   n1     <none>           app=web",
    ]


def test_jobs_are_printed_with_volcanos_columns() -> None:
    assert render([JOB], NOW, output="wide").splitlines() == [
        "NAME    STATUS    MINAVAILABLE   RUNNINGS   AGE   QUEUE",
        "train   Running   3              3          3h    q",
    ]


def test_several_kinds_have_a_table_each_with_full_names() -> None:
    assert render([POD, JOB], NOW).splitlines() == [
        "NAME        READY   STATUS    RESTARTS   AGE",
        "pod/web-0   1/1     Running   2          5m",
        "",
        "NAME                         STATUS    MINAVAILABLE   RUNNINGS   AGE",
        "job.batch.volcano.sh/train   Running   3              3          3h",
    ]


def test_objects_are_printed_whole_as_json_and_yaml() -> None:
    assert json.loads(render([POD], NOW, output="json", single=True)) == POD
    assert yaml.safe_load(render([POD, JOB], NOW, output="yaml"))["items"] == [POD, JOB]
    assert yaml.safe_load(render([], NOW, output="yaml", single=True))["kind"] == "List"
    assert "&id" not in render([POD, POD], NOW, output="yaml")


def test_names_are_printed_with_their_kind() -> None:
    assert render([POD, JOB], NOW, output="name").splitlines() == ["pod/web-0", "job.batch.volcano.sh/train"]


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(UnknownOutput, match="'xml' is no form of output; one of wide, yaml, json, name"):
        render([POD], NOW, output="xml")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_table_even_for_an_empty_object(kind: str) -> None:
    lines = render([object_of(kind)], NOW, output="wide").splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("60m" if kind == "Event" else "x ")


def test_columns_are_only_for_kinds_that_there_are() -> None:
    assert sorted(COLUMNS.keys() - KINDS.keys()) == []


@pytest.mark.parametrize(
    ("kind", "parts", "line"),
    [
        ("Node", {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
         "x      Ready,SchedulingDisabled   <none>   60m"),
        ("Queue.scheduling.volcano.sh", {"spec": {"weight": 2, "parent": "root"}, "status": {"state": "Open", "running": 1}},
         "x      root     2        Open    0         1         60m"),
        ("Deployment.apps", {"spec": {"replicas": 3}, "status": {"readyReplicas": 2, "updatedReplicas": 3}},
         "x      2/3     3            0           60m"),
        ("Service", {"spec": {"clusterIP": "None", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}},
         "x      ClusterIP   None         <none>        80/TCP,53/UDP   60m"),
        ("PyTorchJob.kubeflow.org", {"status": {"conditions": [{"type": "Created"}, {"type": "Running"}]}}, "x      Running   60m"),
        ("TrainJob.trainer.kubeflow.org", {}, "x      Created   60m"),
        ("TrainJob.trainer.kubeflow.org", {"status": {"jobsStatus": [{"name": "node", "ready": 1}]}}, "x      Running   60m"),
        ("TrainJob.trainer.kubeflow.org",
         {"status": {"jobsStatus": [{"name": "node", "ready": 1}], "conditions": [{"type": "Suspended", "status": "True"}]}},
         "x      Suspended   60m"),
        ("ClusterQueue.kueue.x-k8s.io", {"spec": {"cohortName": "team"}, "status": {"pendingWorkloads": 2}},
         "x      team     2                   0                    60m"),
        ("PriorityClass.scheduling.k8s.io", {"value": 10}, "x      10      false            60m   PreemptLowerPriority"),
        ("InferenceService.serving.kserve.io",
         {"status": {"url": "http://m", "conditions": [{"type": "Ready", "status": "True"}],
                     "components": {"predictor": {"traffic": [{"tag": "prev", "percent": 80}, {"latestRevision": True, "percent": 20}]}}}},
         "x      http://m   True    80     20                             60m"),
        ("HorizontalPodAutoscaler.autoscaling",
         {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 5,
                   "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}]},
          "status": {"currentReplicas": 2, "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 80}}}]}},
         "x      Deployment/web   cpu: 80%/50%   1         5         2          60m"),
    ],
)  # fmt: skip
def test_each_kind_shows_what_matters_of_it(kind: str, parts: Manifest, line: str) -> None:
    assert render([object_of(kind, **parts)], NOW).splitlines()[1] == line


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "<invalid>"), (0, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (3599, "59m"), (3 * 3600, "3h"), (4 * 3600 + 60, "4h1m"),
        (47 * 3600, "47h"), (3 * 86400 + 7200, "3d2h"), (9 * 86400, "9d"), (800 * 86400, "2y70d"), (9 * 365 * 86400, "9y"),
    ],
)  # fmt: skip
def test_an_age_is_told_in_the_units_that_matter(seconds: int, told: str) -> None:
    assert span(seconds) == told


def test_a_time_that_is_none_is_unknown() -> None:
    assert since(None, NOW) == since("soon", NOW) == "<unknown>"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({}, "Pending"),
        ({"phase": "Succeeded"}, "Completed"),
        ({"phase": "Failed"}, "Error"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}],
            },
            "OOMKilled",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
    ],
)
def test_the_state_of_a_pod_is_told_in_one_word(status: Manifest, told: str) -> None:
    assert pod_status({"metadata": {}, "status": status}) == told


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    assert (
        pod_status({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}})
        == "Terminating"
    )


def test_a_path_may_count_from_the_end() -> None:
    assert dig({"a": [{"b": 1}, {"b": 2}]}, "a[-1].b") == 2
    assert dig({"a": []}, "a[-1].b") is None


def test_the_state_of_a_job_is_the_last_condition_that_holds() -> None:
    """A resumed job keeps its condition Suspended, which says False now."""
    said = [("Created", "True"), ("Running", "True"), ("Suspended", "False")]
    status = {"conditions": [{"type": kind, "status": holds} for kind, holds in said]}
    for api, kind in (("kubeflow.org/v1", "PyTorchJob"), ("batch/v1", "Job")):
        job = {"apiVersion": api, "kind": kind, "metadata": {"name": "j"}, "spec": {}, "status": status}
        column = next(one for one in COLUMNS[f"{kind}.{api.partition('/')[0]}"] if one.title in ("STATE", "STATUS"))
        assert column.read(job, NOW) == "Running"
