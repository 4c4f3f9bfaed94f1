"""Commands that show something: get, describe, explain, events, top, status, whoami, version."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from kube import Key, Manifest
from tidegate.api.v1 import api_pb2
from tidegate_cli import lasting_watch

Make = Callable[..., Manifest]


def test_get_lists_a_kind_in_one_namespace_or_in_all(tidegate: Any, server: Any, pod: Make) -> None:
    for name, namespace in (("a", "default"), ("b", "default"), ("c", "default"), ("d", "team")):
        server.put(pod(name, namespace=namespace))
    rows = tidegate("get", "pods").out.splitlines()
    assert rows[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row.split()[0] for row in rows[1:]] == ["a", "b", "c"], "pages are put together"
    assert [row.split()[:2] for row in tidegate("get", "po", "-A").out.splitlines()[-1:]] == [["team", "d"]]
    assert "d " in tidegate("get", "pods", "-n", "team").out
    assert "d " in tidegate("-n", "team", "get", "pods").out


def test_get_takes_several_kinds_and_all(tidegate: Any, server: Any, pod: Make, job: Manifest) -> None:
    server.put(pod("a"))
    server.put(job)
    out = tidegate("get", "jobs,pods").out
    assert out.index("job.batch.volcano.sh/ring") < out.index("pod/a")
    assert {"pod/a", "job.batch.volcano.sh/ring"} == set(tidegate("get", "all", "-o", "name").out.split())


def test_get_by_name_gives_the_object_itself_and_tells_of_missing_ones(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(pod("a"))
    server.put(pod("b"))
    assert yaml.safe_load(tidegate("get", "pod", "a", "-o", "yaml").out)["metadata"]["name"] == "a"
    assert json.loads(tidegate("get", "pods", "-o", "json").out)["kind"] == "List"
    ended = tidegate("get", "pod/a", "pod/nope", "-o", "name")
    assert (ended.code, ended.out, ended.err) == (1, "pod/a\n", "Error: Pod/default/nope not found\n")
    assert tidegate("get", "pod", "nope", "--ignore-not-found").code == 0


def test_get_selects_sorts_and_shows_labels(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(pod("a", labels={"app": "web", "rank": "2"}))
    server.put(pod("b", phase="Pending", labels={"app": "web", "rank": "10"}))
    server.put(pod("c", labels={"app": "db"}))
    assert tidegate("get", "pods", "-l", "app=web", "-o", "name").out == "pod/a\npod/b\n"
    assert tidegate("get", "pods", "--field-selector", "status.phase=Pending", "-o", "name").out == "pod/b\n"
    assert tidegate("get", "pods", "--sort-by", "{.metadata.labels.rank}", "-o", "name").out == "pod/c\npod/a\npod/b\n"
    assert "app=web,rank=2" in tidegate("get", "pods", "--show-labels").out
    assert tidegate("get", "pods", "--no-headers").out.splitlines()[0].startswith("a ")


def test_get_says_when_there_is_nothing(tidegate: Any) -> None:
    ended = tidegate("get", "pods")
    assert (ended.code, ended.out, ended.err) == (0, "", "No pods found in namespace default.\n")
    assert tidegate("get", "nodes").err == "No nodes found.\n"
    assert json.loads(tidegate("get", "pods", "-o", "json").out)["items"] == []


def test_get_watch_shows_what_there_is_and_then_what_changes(
    tidegate: Any, server: Any, pod: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch that breaks off is taken up again where it was."""
    monkeypatch.setattr(lasting_watch, "PAUSE_SECONDS", 0.05)
    server.put(pod("a", phase="Pending"))
    server.broken_watches = 1
    server.when_watched(
        lambda: server.put(pod("a", phase="Running")),
        lambda: server.put(pod("a-longer-name", phase="Pending")),
        lambda: setattr(server, "ends_watches", True),
    )
    ended = tidegate("get", "pods", "-w")
    rows = [row.split() for row in ended.out.splitlines()]
    assert [row[0] for row in rows] == ["NAME", "a", "a", "a-longer-name"]
    assert [row[2] for row in rows[1:]] == ["Pending", "Running", "Pending"]
    assert (ended.code, ended.err) == (1, "Error: enough\n")


def test_describe_tells_of_the_object_its_pods_and_what_happened(
    tidegate: Any, server: Any, pod: Make, job: Manifest
) -> None:
    server.put(job)
    server.put(
        pod("ring-worker-0", ownerReferences=[{"uid": "uid-ring", "controller": True, "kind": "Job", "name": "ring"}])
    )
    server.put(pod("stranger"))
    about = api_pb2.ObjectName(kind="Job.batch.volcano.sh", namespace="default", name="ring")
    server.events = [
        api_pb2.Event(at_ms=1, source="job_controller", name="PodsWanted", message="2 pods", about=about, applied=True)
    ]
    out = tidegate("describe", "job", "ring").out
    assert re.search(r"Name: +ring", out)
    assert "ring-worker-0" in out
    assert "stranger" not in out
    assert re.search(r"PodsWanted +\S+ +job_controller +2 pods", out)
    assert tidegate("describe", "job", "nope").code == 1


def test_describe_of_a_node_lists_the_pods_on_it(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
    )
    server.put(pod("on-it", nodeName="n1"))
    server.put(pod("elsewhere", nodeName="n2"))
    out = tidegate("describe", "node/n1").out
    assert "on-it" in out
    assert "elsewhere" not in out


def test_explain_of_a_bare_name_tries_jobs_then_groups_then_pods(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(pod("ring-worker-0"))
    server.lines["ring-worker-0"] = ["Pod/default/ring-worker-0: Waiting", "  needs cpu 4, has 2"]
    ended = tidegate("explain", "ring-worker-0")
    assert ended.out == "Pod/default/ring-worker-0: Waiting\n  needs cpu 4, has 2\n"
    asked = [request.name.kind for request in server.asked["Explain"]]
    assert (asked[0], asked[-2:]) == ("Job.batch.volcano.sh", ["PodGroup.scheduling.volcano.sh", "Pod"])
    assert tidegate("explain", "pod/ring-worker-0", "-o", "json").out == '{\n  "lines": 2\n}\n'
    ended = tidegate("explain", "nope")
    assert (ended.code, ended.err) == (1, "Error: there is no job, pod group or pod 'nope' in namespace default\n")
    assert tidegate("explain", "job/nope").err == "Error: Job/default/nope not found\n"


def test_events_are_a_table_of_what_was_decided(tidegate: Any, server: Any) -> None:
    now = int(time.time() * 1000)
    about = api_pb2.ObjectName(kind="PodGroup.scheduling.volcano.sh", namespace="default", name="ring")
    server.events = [
        api_pb2.Event(
            at_ms=now - 90_000, source="gang_scheduler", name="GangPlaced", reason="MinimumPlaced",
            message="2 pods\nare bound", about=about, applied=True,
        )
    ]  # fmt: skip
    out = tidegate("events", "--limit", "5").out
    assert re.search(r"9\ds +gang_scheduler +GangPlaced +MinimumPlaced +podgroup/ring +2 pods are bound", out)
    tidegate("events", "--for", "queue/research")
    tidegate("events", "--dead")
    tidegate("events", "-A")
    first, about_queue, dead, everywhere = server.asked["Events"]
    assert (first.namespace, first.limit) == ("default", 5)
    assert (about_queue.about.kind, about_queue.namespace) == ("Queue.scheduling.volcano.sh", "")
    assert dead.dead
    assert everywhere.namespace == ""
    assert json.loads(tidegate("events", "-o", "json").out)[0]["about"]["name"] == "ring"


def test_top_nodes_sets_what_is_asked_for_against_what_there_is(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4"}},
        }
    )  # fmt: skip
    server.put(pod("a", nodeName="n1", requests={"cpu": "1500m", "memory": "4Gi", "nvidia.com/gpu": "1"}))
    server.put(pod("b", nodeName="n1", requests={"cpu": "500m", "memory": "0.5Gi"}))
    server.put(pod("done", phase="Succeeded", nodeName="n1", requests={"cpu": "6"}))
    titles, row = (re.split(r"\s{2,}", line) for line in tidegate("top", "nodes").out.splitlines())
    assert dict(zip(titles, row, strict=True)) == {
        "NAME": "n1",
        "PODS": "2/110 (1%)",
        "CPU": "2/8 (25%)",
        "MEMORY": "4.5Gi/16Gi (28%)",
        "nvidia.com/gpu": "1/4 (25%)",
    }


def test_top_shows_usage_where_a_node_measures_it(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(pod("a", nodeName="n1"))
    server.put(
        {
            "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"},
            "status": {"podsMetric": [
                {"namespace": "default", "name": "a", "podUsage": {"resources": {"cpu": "250m", "memory": "100Mi"}}}
            ]},
        }
    )  # fmt: skip
    out = tidegate("top", "pods").out
    assert re.search(r"NAME +NODE +CPU +MEMORY +CPU USED +MEMORY USED", out)
    assert re.search(r"a +n1 +1 +1Gi +250m +100Mi", out)


def test_status_fails_when_a_service_does_not_answer(tidegate: Any, server: Any) -> None:
    server.services = [api_pb2.ServiceStatus(name="gang_scheduler", ready=True, position=5)]
    ended = tidegate("status")
    assert ended.code == 0
    assert ended.out.splitlines()[0] == f"Tidegate 9.9 at {server.address}, revision 7"
    assert re.search(r"gang_scheduler +Ready +5", ended.out)
    assert "Objects: 1 jobs.batch, 3 pods" in ended.out
    server.services.append(api_pb2.ServiceStatus(name="queue_manager", message="no answer"))
    ended = tidegate("status")
    assert ended.code == 1
    assert re.search(r"queue_manager +NotReady +0 +no answer", ended.out)
    assert json.loads(tidegate("status", "-o", "json").out)["services"][1]["name"] == "queue_manager"


def test_whoami_and_version(tidegate: Any) -> None:
    assert tidegate("whoami").out == "ada, who may write in team\n"
    assert re.fullmatch(r"Client: \S+\nServer: 9.9\n", tidegate("version").out)


def test_wait_returns_when_the_state_is_reached(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    running = {**job, "status": {"state": {"phase": "Running"}, "conditions": [{"type": "Ready", "status": "True"}]}}
    server.when_watched(lambda: server.put(running))
    ended = tidegate("wait", "job/ring", "--for=phase=running", "--timeout", "60s")
    assert (ended.code, ended.out) == (0, "job.batch.volcano.sh/ring condition met\n")
    assert tidegate("wait", "job/ring", "--for=condition=ready").code == 0
    assert tidegate("wait", "job", "--all", "--for=jsonpath={.spec.minAvailable}=2").code == 0
    server.when_watched(lambda: server.remove(Key("Job.batch.volcano.sh", "default", "ring")))
    assert tidegate("wait", "job/ring", "--for=delete").out == "job.batch.volcano.sh/ring deleted\n"
    server.when_watched(lambda: server.put(job))
    assert tidegate("wait", "job/ring", "--for=create").out == "job.batch.volcano.sh/ring created\n"


def test_wait_ends_with_1_when_the_time_is_over_or_the_object_is_gone(
    tidegate: Any, server: Any, job: Manifest
) -> None:
    ended = tidegate("wait", "job/ring", "--for=phase=Running", "--timeout", "5s")
    assert (ended.code, "is not there" in ended.err) == (1, True)
    server.put(job)
    ended = tidegate("wait", "job/ring", "--for=phase=Running", "--timeout", "0.2s")
    assert ended.code == 1
    assert "timed out waiting for phase=Running of job.batch.volcano.sh/ring; it is Pending" in ended.err
    server.when_watched(lambda: server.remove(Key("Job.batch.volcano.sh", "default", "ring")))
    ended = tidegate("wait", "job/ring", "--for=phase=Running", "--timeout", "60s")
    assert "was deleted before it came to phase=Running" in ended.err


@pytest.mark.parametrize(
    ("phase", "goal", "code"),
    [
        ("Completed", "Running", 1),
        ("Failed", "Running", 1),
        ("Completed", "Failed", 1),
        ("Completed", "completed", 0),
        ("Terminated", "Pending", 1),
    ],
)
def test_wait_ends_at_once_when_the_phase_cannot_come_any_more(
    tidegate: Any, server: Any, job: Manifest, phase: str, goal: str, code: int
) -> None:
    """Whether the job has ended before, or ends while it is waited for."""
    ended = {**job, "status": {"state": {"phase": phase}}}
    server.put({**job, "status": {"state": {"phase": "Inqueue"}}})
    server.when_watched(lambda: server.put(ended))
    for _ in range(2):
        done = tidegate("wait", "job/ring", f"--for=phase={goal}", "--timeout", "60s")
        assert done.code == code
        if code:
            assert f"has ended: it is {phase} and does not come to phase={goal} any more" in done.err


def test_logs_of_a_pod_are_its_bytes_and_those_of_a_job_stand_behind_pod_names(
    tidegate: Any, server: Any, pod: Make, job: Manifest
) -> None:
    owner = [{"uid": "uid-ring", "controller": True, "kind": "Job", "name": "ring"}]
    server.put(job)
    server.put(pod("ring-0", ownerReferences=owner))
    server.put(pod("ring-1", ownerReferences=owner))
    server.put(pod("ring-2", ownerReferences=owner))
    server.logs = {"ring-0": [b"one\ntw", b"o\n"], "ring-1": [b"last line"]}
    assert tidegate("logs", "ring-0", "-f", "--tail", "9").out == "one\ntwo\n"
    request = server.asked["Logs"][0]
    assert (request.container, request.follow, request.tail) == ("main", True, 9)
    assert tidegate("logs", "pod/ring-0").out == "one\ntwo\n"
    ended = tidegate("logs", "job/ring")
    assert sorted(ended.out.splitlines()) == ["[ring-0] one", "[ring-0] two", "[ring-1] last line"]
    assert (ended.code, ended.err) == (0, "Error: ring-2 has not been placed on a node yet\n")
    assert tidegate("logs", "ring-2").code == 1


def test_logs_are_read_from_a_time_on_and_told_with_their_times(tidegate: Any, server: Any, pod: Make) -> None:
    server.put(pod("p"))
    server.logs = {"p": [b"line\n"]}

    def since_of(*words: str) -> int:
        assert tidegate("logs", "p", *words).out == "line\n"
        return int(server.asked["Logs"][-1].since_ms)

    assert since_of() == 0
    assert since_of("--since-time", "2026-01-31T12:00:00+01:00", "--timestamps") == 1_769_857_200_000
    assert [request.timestamps for request in server.asked["Logs"]] == [False, True]
    before = time.time_ns() // 1_000_000
    assert 0 <= since_of("--since", "1h30m") - (before - 5_400_000) < 5_000
    assert since_of("--tail", "0", "-f") >= before
    for words in (
        ("--since", "soon"),
        ("--since-time", "12:00"),
        ("--since", "1s", "--since-time", "2026-01-31T12:00:00Z"),
    ):
        refused = tidegate("logs", "p", *words)
        assert refused.code == 2 and "--since" in refused.err


def test_logs_of_several_containers_and_of_pods_behind_another_object(tidegate: Any, server: Any, pod: Make) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "d"}}
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "uid": "r", "ownerReferences": [{"uid": "d"}]},
    }
    server.put(deployment)
    server.put(replicas)
    server.put(pod("web-1-x", ownerReferences=[{"uid": "r"}], containers=["main", "proxy"]))
    server.logs = {"web-1-x": [b"hello\n"]}
    ended = tidegate("logs", "deploy/web")
    assert ended.out == "[web-1-x] hello\n"
    assert "web-1-x: this is container main; others: proxy" in ended.err
    out = tidegate("logs", "deploy/web", "--all-containers").out
    assert sorted(out.splitlines()) == ["[web-1-x/main] hello", "[web-1-x/proxy] hello"]
    assert "there are no pods with labels app=nope" in tidegate("logs", "-l", "app=nope").err
