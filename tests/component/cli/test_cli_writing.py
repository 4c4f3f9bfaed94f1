"""Commands that change something: apply, create, delete, suspend, resume, scale."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from kube import Key, Manifest

QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: ring}
spec: {queue: research}
"""


def test_apply_says_for_each_object_what_became_of_it(tidegate: Any, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert tidegate("apply", "-f", "job.yaml").out == "job.batch.volcano.sh/ring created\n"
    assert tidegate("apply", "-f", "job.yaml").out == "job.batch.volcano.sh/ring unchanged\n"
    (tmp_path / "job.yaml").write_text(JOB + "---\n" + QUEUE)
    (tmp_path / "job.yaml").write_text(JOB.replace("queue: research", "queue: other") + "---" + QUEUE)
    ended = tidegate("apply", "-f", "job.yaml")
    assert ended.out == "queue.scheduling.volcano.sh/research created\njob.batch.volcano.sh/ring configured\n"
    assert ended.code == 0


def test_apply_reads_folders_several_files_and_json_and_puts_queues_before_jobs(
    tidegate: Any, server: Any, tmp_path: Path
) -> None:
    (tmp_path / "all" / "deep").mkdir(parents=True)
    (tmp_path / "all" / "a-job.yaml").write_text(JOB)
    (tmp_path / "all" / "deep" / "queue.yml").write_text(QUEUE)
    (tmp_path / "all" / "notes.txt").write_text("not a manifest")
    (tmp_path / "two.json").write_text(
        '{"apiVersion": "v1", "kind": "List", "items": ['
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},'
        '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}]}'
    )
    ended = tidegate("apply", "-f", "all", "-f", "two.json")
    assert ended.out.split() == [
        "namespace/b", "created",
        "queue.scheduling.volcano.sh/research", "created",
        "configmap/a", "created",
        "job.batch.volcano.sh/ring", "created",
    ]  # fmt: skip
    assert len(server.asked["Apply"]) == 1, "what is handed in together goes in one request"


def test_apply_reads_standard_input(tidegate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(QUEUE.encode())))
    assert tidegate("apply", "-f", "-").out == "queue.scheduling.volcano.sh/research created\n"


def test_a_refused_object_is_told_by_field_and_place_and_the_others_are_applied(
    tidegate: Any, server: Any, tmp_path: Path
) -> None:
    (tmp_path / "both.yaml").write_text(QUEUE + "---" + JOB)
    server.refusals = {"ring": [("spec.queue", "research", "queue research is closed"), ("spec.tasks", "", "is empty")]}
    ended = tidegate("apply", "-f", "both.yaml")
    assert ended.code == 1
    assert ended.out == "queue.scheduling.volcano.sh/research created\n"
    assert ended.err.splitlines() == [
        "job.batch.volcano.sh/ring refused (both.yaml, document 2, line 6)",
        "  spec.queue: research: queue research is closed",
        "  spec.tasks: is empty",
        "Error: 1 of 2 refused",
    ]


def test_warnings_go_to_standard_error(tidegate: Any, server: Any, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    server.warnings = {"ring": "spec.old is out of use"}
    ended = tidegate("apply", "-f", "job.yaml")
    assert "Warning: job.batch.volcano.sh/ring: spec.old is out of use" in ended.err
    assert ended.code == 0


def test_a_dry_run_and_replace_and_create_are_handed_on(tidegate: Any, server: Any, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert tidegate("apply", "-f", "job.yaml", "--dry-run").out.endswith("created (dry run)\n")
    assert not server.objects
    tidegate("apply", "-f", "job.yaml", "--replace")
    tidegate("create", "-f", "job.yaml")
    assert [(one.dry_run, one.replace, one.create_only) for one in server.asked["Apply"]] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_the_namespace_option_places_manifests_and_contradicts_none(
    tidegate: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "other.yaml").write_text(JOB.replace("name: ring", "name: ring, namespace: other"))
    tidegate("apply", "-f", "job.yaml", "-n", "team")
    tidegate("apply", "-f", "other.yaml")
    monkeypatch.setenv("TIDEGATE_NAMESPACE", "mine")
    tidegate("apply", "-f", "job.yaml")
    assert {key.namespace for key in server.objects} == {"team", "other", "mine"}
    ended = tidegate("apply", "-f", "other.yaml", "-n", "team")
    assert (ended.code, len(server.objects)) == (1, 3)
    assert "its namespace is 'other', not the 'team' of --namespace" in ended.err


def test_if_one_file_cannot_be_read_nothing_is_applied_and_all_problems_are_told(
    tidegate: Any, server: Any, tmp_path: Path
) -> None:
    (tmp_path / "good.yaml").write_text(JOB)
    (tmp_path / "bad.yaml").write_text("a: [1\nb: 2\n")
    ended = tidegate("apply", "-f", "good.yaml", "-f", "bad.yaml", "-f", "none.yaml")
    assert (ended.code, dict(server.asked)) == (1, {})
    assert "bad.yaml:2:2: did not find expected" in ended.err
    assert "none.yaml: No such file or directory" in ended.err


def test_delete_waits_until_the_object_is_gone(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    server.lingering_seconds = 0.2
    ended = tidegate("delete", "job/ring")
    assert (ended.code, ended.out) == (0, "job.batch.volcano.sh/ring deleted\n")
    assert not server.objects


def test_delete_does_not_wait_when_told_so_or_longer_than_told(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    server.lingering_seconds = 5.0
    assert tidegate("delete", "job", "ring", "--no-wait", "--grace-period", "3").code == 0
    assert server.objects
    assert server.asked["Delete"][0].grace_seconds == 3
    ended = tidegate("delete", "job/ring", "--timeout", "0.1s")
    assert ended.code == 1
    assert "Job/default/ring is still being deleted" in ended.err
    assert not server.asked["Delete"][1].HasField("grace_seconds")


def test_an_object_that_was_made_anew_meanwhile_does_not_keep_delete_waiting(
    tidegate: Any, server: Any, job: Manifest
) -> None:
    server.put(job)

    def replaced() -> None:
        server.remove(Key("Job.batch.volcano.sh", "default", "ring"))
        server.put({**job, "metadata": {**job["metadata"], "uid": "another"}})

    server.lingering_seconds = 30.0
    server.when_watched(replaced)
    assert tidegate("delete", "job/ring", "--timeout", "60s").code == 0


def test_delete_takes_labels_all_and_files_in_the_opposite_order(
    tidegate: Any, server: Any, pod: Callable[..., Manifest], tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        server.put(pod(name, labels={"app": "web" if name != "c" else "db"}))
    assert tidegate("delete", "pods", "-l", "app=web").out == "pod/a deleted\npod/b deleted\n"
    assert tidegate("delete", "pods", "--all").out == "pod/c deleted\n"
    assert tidegate("delete", "pods", "--all").err == "Nothing to delete.\n"
    (tmp_path / "both.yaml").write_text(QUEUE + "---" + JOB)
    tidegate("apply", "-f", "both.yaml")
    assert [line.split("/")[0] for line in tidegate("delete", "-f", "both.yaml").out.splitlines()] == [
        "job.batch.volcano.sh",
        "queue.scheduling.volcano.sh",
    ]


def test_deleting_what_is_not_there_fails_unless_that_is_fine(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    ended = tidegate("delete", "job", "ring", "nope")
    assert (ended.code, ended.out) == (1, "job.batch.volcano.sh/ring deleted\n")
    assert "Job/default/nope not found" in ended.err
    assert tidegate("delete", "job", "nope", "--ignore-not-found").code == 0


@pytest.mark.parametrize(
    "words",
    [("delete",), ("delete", "pods"), ("delete", "pod/a", "--all"), ("delete", "pod/a", "-f", "x"), ("delete", "all")],
)
def test_delete_never_guesses_what_is_meant(tidegate: Any, server: Any, words: tuple[str, ...]) -> None:
    assert tidegate(*words).code == 2
    assert not server.asked


def test_suspend_resume_and_scale_say_what_was_done(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    assert tidegate("suspend", "job/ring").out == "ring suspended\n"
    assert tidegate("resume", "vcjob", "ring").out == "ring resumed\n"
    assert tidegate("scale", "job/ring", "--task", "worker", "--replicas", "8").out == "ring scaled to 8\n"
    request = server.asked["Scale"][0]
    assert (request.name.kind, request.name.namespace, request.task) == ("Job.batch.volcano.sh", "default", "worker")


def test_scheduling_is_paused_with_a_reason_and_resumed(tidegate: Any, server: Any) -> None:
    assert tidegate("pause", "scheduling", "--reason", "repairs").out == "paused\n"
    assert tidegate("resume", "scheduling").out == "goes on\n"
    assert [(one.paused, one.reason) for one in server.asked["SetScheduling"]] == [(True, "repairs"), (False, "")]
    assert tidegate("pause", "job/ring").code == 2


def test_one_that_cannot_be_suspended_does_not_keep_the_others_from_it(
    tidegate: Any, server: Any, job: Manifest
) -> None:
    server.put(job)
    ended = tidegate("suspend", "job/nope", "job/ring")
    assert (ended.code, ended.out) == (1, "ring suspended\n")
    assert ended.err == "Error: Job/default/nope not found\n"


def test_an_operation_that_a_kind_does_not_have_is_refused_with_the_servers_words(
    tidegate: Any, server: Any, job: Manifest
) -> None:
    server.put(job)
    server.failures["Scale"] = (grpc.StatusCode.INVALID_ARGUMENT, "Job/default/ring has more than one task; name one")
    ended = tidegate("scale", "job/ring", "--replicas", "1")
    assert (ended.code, ended.err) == (1, "Error: Job/default/ring has more than one task; name one\n")


def test_json_manifests_are_sent_as_they_were_written(tidegate: Any, server: Any, tmp_path: Path) -> None:
    """Times stay text, keys are text, and numbers to the base of 60 are text, too."""
    (tmp_path / "map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"
        "data: {at: 2026-01-01T00:00:00Z, 1: a, span: 12:30:00, mode: 0644, yes: on, one: 1.5}\n"
    )
    tidegate("apply", "-f", "map.yaml")
    assert json.loads(server.asked["Apply"][0].manifests[0])["data"] == {
        "at": "2026-01-01T00:00:00Z",
        "1": "a",
        "span": "12:30:00",
        "mode": 0o644,
        "true": True,
        "one": 1.5,
    }


def test_a_patch_is_sent_as_it_was_given_and_its_end_is_told(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    assert tidegate("patch", "job/ring", "-p", '{"spec": {"queue": "b"}}').out == "job.batch.volcano.sh/ring patched\n"
    operation = '[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]'
    assert tidegate("patch", "job", "ring", "--type", "json", "-p", operation).code == 0
    assert [json.loads(asked.patch) for asked in server.asked["Patch"]] == [
        {"spec": {"queue": "b"}},
        [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
    ]
    server.patched = "unchanged"
    ended = tidegate("patch", "job/ring", "-p", "spec: {queue: b}", "--dry-run")
    assert ended.out.startswith("job.batch.volcano.sh/ring patched (no change)") and server.asked["Patch"][-1].dry_run


def test_patch_tells_what_does_not_fit(tidegate: Any, server: Any, job: Manifest) -> None:
    server.put(job)
    server.refusals["ring"] = [("spec.queue", '"b"', "there is no such queue")]
    ended = tidegate("patch", "job/ring", "-p", '{"spec": {"queue": "b"}}')
    assert (ended.code, ended.err) == (1, 'Error: spec.queue: "b": there is no such queue\n')
    assert tidegate("patch", "job/nope", "-p", '{"spec": {}}').code == 1
