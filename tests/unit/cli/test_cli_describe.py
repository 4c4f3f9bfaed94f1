"""What ``tidegate describe`` prints."""

from kube import Manifest, parse_time
from tidegate_cli.describe import describe

NOW = parse_time("2026-01-01T01:00:00Z")
JOB: Manifest = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "default",
        "uid": "u",
        "labels": {"b": "2", "a": "1"},
        "creationTimestamp": "2026-01-01T00:58:30Z",
    },
    "spec": {"minAvailable": 2, "queue": "q", "tasks": [{"name": "w", "replicas": 2}], "policies": []},
    "status": {
        "state": {"phase": "Pending"},
        "conditions": [{"type": "Inqueue", "status": "False", "reason": "OverCapability", "message": "4 cpu of 3"}],
    },
}
POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-w-0",
        "namespace": "default",
        "creationTimestamp": "2026-01-01T00:59:00Z",
        "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
    },
    "spec": {
        "priority": 5,
        "containers": [
            {
                "name": "c",
                "image": "busybox",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
            }
        ],
    },
    "status": {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes have 1 cpu"}
        ],
    },
}
EVENTS: list[Manifest] = [
    {"type": "Warning", "reason": "Late", "message": "second", "lastTimestamp": "2026-01-01T00:59:30Z",
     "firstTimestamp": "2026-01-01T00:59:00Z", "count": 3, "source": {"component": "gang_scheduler"}},
    {"reason": "Early", "message": "first", "lastTimestamp": "2026-01-01T00:59:00Z"},
]  # fmt: skip


def test_any_object_is_told_with_all_its_fields_its_conditions_and_what_it_owns() -> None:
    assert describe(JOB, [POD], [], NOW).splitlines() == [
        "Name:              train",
        "Namespace:         default",
        "Labels:            a=1",
        "                   b=2",
        "Annotations:       <none>",
        "API Version:       batch.volcano.sh/v1alpha1",
        "Kind:              Job",
        "Created:           2026-01-01T00:58:30Z (90s ago)",
        "Spec:",
        "  Min Available: 2",
        "  Queue: q",
        "  Tasks:",
        "    - Name: w",
        "      Replicas: 2",
        "  Policies: []",
        "Status:",
        "  State:",
        "    Phase: Pending",
        "Conditions:",
        "  Type     Status  Reason          Message",
        "  Inqueue  False   OverCapability  4 cpu of 3",
        "Pods:",
        "  Name       Ready  Status   Restarts  Age  IP      Node    Nominated node",
        "  train-w-0  0/1    Pending  0         60s  <none>  <none>  <none>",
        "Events:            <none>",
    ]


def test_a_pod_is_told_with_its_containers_and_why_it_waits() -> None:
    lines = describe(POD, [], [], NOW).splitlines()
    assert "Controlled By:     Job/train" in lines
    assert "Waits:             Unschedulable 0/2 nodes have 1 cpu" in lines
    start = lines.index("Containers:")
    assert lines[start : start + 12] == [
        "Containers:",
        "  c:",
        "    Image:    busybox",
        "    State:    Waiting",
        "    Ready:    False",
        "    Restarts: 0",
        "    Requests:",
        "      cpu: 1",
        "      memory: 1Gi",
        "    Environment:",
        "      A: 1",
        "      B: <set from secretKeyRef s k>",
    ]


def test_a_container_that_ended_is_told_with_its_exit_code() -> None:
    ended = {"name": "c", "restartCount": 1, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    pod = {**POD, "status": {"phase": "Failed", "containerStatuses": [ended]}}
    text = describe(pod, [], [], NOW)
    assert "    State:    Terminated\n      Reason: OOMKilled\n      Exit Code: 137\n" in text
    assert "Status:            OOMKilled" in text


def test_a_node_is_told_with_what_its_pods_request() -> None:
    node: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4"},
            "capacity": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    done = {**POD, "status": {"phase": "Succeeded"}}
    lines = describe(node, [POD, POD, done], [], NOW).splitlines()
    assert "Taints:            gpu=yes:NoSchedule" in lines
    start = lines.index("Requested:")
    assert lines[start : start + 3] == ["Requested:", "  cpu: 2", "  memory: 2Gi"]


def test_names_that_people_gave_stay_as_they_are_and_empty_is_not_absent() -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {}, "plugins": {"svc": []}, "queue": None}
    text = describe({**JOB, "spec": spec, "status": {}}, [], [], NOW)
    assert "  Selector:\n    Match Labels:\n      app: web\n  Namespace Selector: {}\n" in text
    assert "  Plugins:\n    svc: []\n  Queue: <none>\n" in text


def test_the_conditions_of_a_job_flow_are_a_map_of_its_jobs() -> None:
    flow: Manifest = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "nightly", "namespace": "default"},
        "status": {"state": {"phase": "Succeed"}, "conditions": {"nightly-prepare": {"phase": "Completed"}}},
    }
    assert "Conditions:\n  nightly-prepare:\n    Phase: Completed\nEvents:" in describe(flow, [], [], NOW)


def test_pods_of_several_namespaces_are_listed_with_them() -> None:
    node: Manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {}}
    assert "  default    train-w-0  0/1 " in describe(node, [POD], [], NOW)
    assert "  Namespace  Name " not in describe(JOB, [POD], [], NOW)


def test_a_program_in_a_command_is_told_by_its_first_line() -> None:
    container = {"name": "c", "image": "i", "command": ["python", "-c", "import os\nprint(1)\n"], "args": ["-n", 2]}
    text = describe({**POD, "spec": {"containers": [container]}}, [], [], NOW)
    assert "    Command:  python -c import os ...\n    Args:     -n 2\n" in text


def test_events_stand_in_the_order_in_which_they_happened() -> None:
    assert describe(JOB, [], EVENTS, NOW).splitlines()[-3:] == [
        "  Type     Reason  Age                From            Message",
        "  Normal   Early   60s                                first",
        "  Warning  Late    30s (x3 over 60s)  gang_scheduler  second",
    ]


def test_a_text_of_several_lines_is_set_below_its_title() -> None:
    config: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"hosts": "a\nb\n"}}
    assert "Data:\n  hosts:\n    a\n    b\nEvents:" in describe(config, [], [], NOW)


def test_the_values_of_a_secret_are_not_told() -> None:
    secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "aGVsbG8="}}
    text = describe(secret, [], [], NOW)
    assert "  key: 8 characters" in text
    assert "aGVsbG8=" not in text
