"""Who may write where, and what suspend, resume and scale mean for each kind."""

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from admission.callers import Ask, Denied, apply_asks
from admission.door import Door
from admission.operations import NotPossible, key_of_name, scale, suspend
from admission.users import User, Users
from kube import Key, Manifest, Object, UnknownKind, from_manifest


def known(users: Users, token: str) -> User:
    found = users.find(token)
    assert found is not None
    return found


def asks(manifest: Manifest) -> Iterator[Ask]:
    return apply_asks(manifest, lambda key: False)


# --- users ----------------------------------------------------------------------------------------------------------------


def test_a_missing_file_is_made_with_an_admin_that_only_its_owner_can_read(tmp_path: Path) -> None:
    file = tmp_path / "data" / "users.yaml"
    users = Users.load(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text().split("token: ")[1].splitlines()[0]
    assert known(users, token).name == "admin"
    assert known(Users.load(file), token).may_write("anywhere")


def test_an_admin_whose_token_is_given_needs_no_file(tmp_path: Path) -> None:
    """And none is made; a file is of the others then."""
    file = tmp_path / "users.yaml"
    assert known(Users.load(file, "given"), "given").may_write("anywhere")
    assert not file.exists()
    file.write_text("- {name: ann, token: t1, namespaces: [team-a]}\n")
    users = Users.load(file, "given")
    assert [known(users, token).name for token in ("given", "t1")] == ["admin", "ann"]
    file.write_text("- {name: admin, token: t1, namespaces: ['*']}\n")
    with pytest.raises(ValueError, match="admin has the token of the setting admin_token"):
        Users.load(file, "given")


def test_a_user_writes_only_in_the_namespaces_named(tmp_path: Path) -> None:
    file = tmp_path / "users.yaml"
    file.write_text(
        "- {name: ann, token: t1, namespaces: [team-a, team-b]}\n- {name: bob, token: t2, namespaces: ['*']}\n"
    )
    ann, bob = (known(Users.load(file), token) for token in ("t1", "t2"))
    assert [ann.may_write(space) for space in ("team-a", "team-b", "other", "")] == [True, True, False, False]
    assert bob.may_write("other") and bob.may_write("")


def test_a_user_without_namespaces_writes_nowhere_and_reads_everything(tmp_path: Path) -> None:
    """What was left out must not give more than what could have been written."""
    file = tmp_path / "users.yaml"
    file.write_text("- {name: eve, token: t1}\n- {name: bob, token: t2, namespaces: []}\n")
    for token in ("t1", "t2"):
        user = known(Users.load(file), token)
        assert not user.may_write("default") and not user.may_write("") and user.reads_all
        with pytest.raises(
            Denied, match=r"may not write in namespace default; allowed: nothing, .* \[\"\*\"\] stands for all"
        ):
            user.check_write("default")


@pytest.mark.parametrize("name", ["gang_scheduler", "cluster_gateway", "node/n1", ""])
def test_no_user_goes_by_the_name_of_a_part_of_the_system(tmp_path: Path, name: str) -> None:
    file = tmp_path / "users.yaml"
    file.write_text(f"- {{name: '{name}', token: t1}}\n")
    with pytest.raises(ValueError, match="no user may be called"):
        Users.load(file)


def test_a_command_needs_the_right_to_write_what_it_is_meant_for() -> None:
    """Closing a queue is no matter of one namespace, though the command lies in one."""
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"namespace": "team-a", "name": "c"},
        "action": "CloseQueue",
    }
    written = Ask("create", "Command.bus.volcano.sh", "team-a", "c")
    queue = Ask("update", "Queue.scheduling.volcano.sh", "", "default")
    assert [*asks({**command, "target": {"kind": "Queue", "name": "default"}})] == [written, queue]
    job = Ask("update", "Job.batch.volcano.sh", "team-a", "j")
    assert [*asks({**command, "target": {"kind": "Job", "name": "j"}})] == [written, job]


def test_what_is_there_is_updated_and_what_is_of_no_kind_takes_no_right() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert [*apply_asks(pod, lambda key: True)] == [Ask("update", "Pod", "default", "p")]
    assert [*apply_asks(pod, lambda key: key.name == "q", "q")] == [Ask("update", "Pod", "default", "q")]
    assert [*asks({**pod, "metadata": 5})] == [Ask("create", "Pod", "default")]
    assert [*asks({"kind": "Nothing"})] == []


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer wrong", "Bearer T1", "Basic t1"])
def test_an_unknown_token_is_denied(header: str) -> None:
    with pytest.raises(Denied):
        asyncio.run(Door(Users([User("ann", "t1"), User("empty", "")])).caller(header))


@pytest.mark.parametrize(
    "content",
    [
        "- {name: ann}",
        "- {token: t}",
        "- ann",
        "{name: ann, token: t}",
        "- {name: ann, token: t, namespaces: team-a}",
        "- {name: ann, token: t, namespaces: '*'}",
        "- {name: ann, token: t, namespaces: }",
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, content: str) -> None:
    """A namespace that is no list must not be read as its letters."""
    file = tmp_path / "users.yaml"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"users\.yaml: each user is"):
        Users.load(file)


# --- operations -----------------------------------------------------------------------------------------------------------


def item(api: str, kind: str, **spec: Any) -> Object:
    manifest: Manifest = {"apiVersion": api, "kind": kind, "metadata": {"name": "j", "namespace": "team"}, "spec": spec}
    return from_manifest({**manifest, "status": {"x": 1}}, uid="u1", revision=5)


def vcjob(*tasks: dict[str, Any], least: int) -> Object:
    return item("batch.volcano.sh/v1alpha1", "Job", tasks=list(tasks), minAvailable=least)


@pytest.mark.parametrize(("suspended", "action"), [(True, "AbortJob"), (False, "ResumeJob")])
def test_a_volcano_job_is_suspended_by_a_command(suspended: bool, action: str) -> None:
    command = suspend(vcjob(least=1), suspended=suspended)
    assert (command["kind"], command["action"], command["metadata"]["namespace"]) == ("Command", action, "team")
    assert (command["target"]["name"], command["target"]["uid"]) == ("j", "u1")


@pytest.mark.parametrize(
    ("api", "kind", "path"),
    [
        ("kubeflow.org/v1", "PyTorchJob", ("runPolicy", "suspend")),
        ("kubeflow.org/v2beta1", "MPIJob", ("runPolicy", "suspend")),
        ("batch/v1", "Job", ("suspend",)),
        ("batch/v1", "CronJob", ("suspend",)),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", ("suspend",)),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", ("suspend",)),
    ],
)
def test_other_jobs_are_suspended_by_a_field(api: str, kind: str, path: tuple[str, ...]) -> None:
    for suspended in (True, False):
        manifest = suspend(item(api, kind, keep="me"), suspended=suspended)
        value: Any = manifest["spec"]
        for name in path:
            value = value[name]
        assert value is suspended and manifest["spec"]["keep"] == "me" and "status" not in manifest


def test_what_is_no_job_cannot_be_suspended_or_scaled() -> None:
    with pytest.raises(NotPossible, match="cannot be suspended"):
        suspend(item("v1", "ConfigMap"), suspended=True)
    with pytest.raises(NotPossible, match="no replicas"):
        scale(item("v1", "ConfigMap"), "", 3)


@pytest.mark.parametrize(
    ("tasks", "least", "task", "replicas", "expected", "new_least"),
    [
        ([("w", 2, 2)], 2, "", 5, [("w", 5, 5)], 5),
        ([("w", 5, 5)], 5, "w", 2, [("w", 2, 2)], 2),
        ([("w", 5, 2)], 2, "w", 8, [("w", 8, 2)], 2),
        ([("w", 5, 4)], 4, "w", 3, [("w", 3, 3)], 3),
        ([("ps", 1, 1), ("w", 3, 3)], 4, "W", 6, [("ps", 1, 1), ("w", 6, 6)], 7),
        ([("ps", 1, 1), ("w", 3, 3)], 2, "w", 0, [("ps", 1, 1), ("w", 0, 0)], 1),
        ([("w", 3, 3)], 3, "w", 0, [("w", 0, 0)], 0),
    ],
)
def test_scaling_a_task_moves_the_minimum_with_it(
    tasks: list[Any], least: int, task: str, replicas: int, expected: list[Any], new_least: int
) -> None:
    """A minimum of all pods stays one; the job's own minimum never goes below one or above what there will be."""
    job = vcjob(*({"name": n, "replicas": r, "minAvailable": m} for n, r, m in tasks), least=least)
    spec = scale(job, task, replicas)["spec"]
    assert [(t["name"], t["replicas"], t["minAvailable"]) for t in spec["tasks"]] == expected
    assert spec["minAvailable"] == new_least


def test_which_task_is_meant_must_be_clear() -> None:
    job = vcjob({"name": "ps", "replicas": 1}, {"name": "w", "replicas": 1}, least=1)
    with pytest.raises(NotPossible, match="more than one task; name one of ps, w"):
        scale(job, "", 3)
    with pytest.raises(NotPossible, match="no task 'x'; name one of ps, w"):
        scale(job, "x", 3)


def test_scaling_other_kinds() -> None:
    torch = item(
        "kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Master": {"replicas": 1}, "Worker": {"replicas": 2}}
    )
    assert scale(torch, "worker", 5)["spec"]["pytorchReplicaSpecs"]["Worker"] == {"replicas": 5}
    assert scale(item("apps/v1", "Deployment"), "", 4)["spec"]["replicas"] == 4
    assert scale(item("batch/v1", "Job"), "", 4)["spec"]["parallelism"] == 4


def test_the_workers_are_meant_where_everybody_else_is_alone() -> None:
    mpi = item(
        "kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs={"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
    )
    assert scale(mpi, "", 5)["spec"]["mpiReplicaSpecs"] == {"Launcher": {"replicas": 1}, "Worker": {"replicas": 5}}
    tf = item("kubeflow.org/v1", "TFJob", tfReplicaSpecs={"PS": {"replicas": 1}, "Worker": {"replicas": 2}})
    with pytest.raises(NotPossible, match="more than one task; name one of PS, Worker"):
        scale(tf, "", 5)


def test_scaling_jobs_that_are_made_of_jobs() -> None:
    sets = item("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[{"name": "a", "replicas": 1}, {"name": "b"}])
    assert scale(sets, "b", 2)["spec"]["replicatedJobs"] == [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 2}]
    train = item("trainer.kubeflow.org/v1alpha1", "TrainJob", trainer={"image": "x"})
    assert scale(train, "", 3)["spec"]["trainer"] == {"image": "x", "numNodes": 3}
    with pytest.raises(NotPossible, match="has no tasks; leave 'node' out"):
        scale(train, "node", 3)


def test_what_has_ended_is_not_scaled() -> None:
    train = item("trainer.kubeflow.org/v1alpha1", "TrainJob")
    ended = train.changed(status={"conditions": [{"type": "Complete", "status": "True"}]})
    with pytest.raises(NotPossible, match=r"has ended \(Complete\)"):
        scale(ended, "", 3)


def test_the_words_of_a_user_mean_a_key() -> None:
    assert key_of_name("po", "", "p") == Key("Pod", "default", "p")
    assert key_of_name("vcjob", "team", "j") == Key("Job.batch.volcano.sh", "team", "j")
    assert key_of_name("nodes", "ignored", "n") == Key("Node", "", "n")
    with pytest.raises(UnknownKind):
        key_of_name("thing", "", "x")
