"""What the demo's board makes of the changes that a watch sees."""

from typing import Any

import pytest

from tidegate.client import Change
from tidegate_cli.demo.board import Board, cpus, phase_of
from tidegate_cli.demo.cast import RESTARTS, RING, TORCH, VICTIM, WIDE, Act


def pod(act: Act, name: str, revision: int = 1, uid: str = "", node: str = "", **status: Any) -> Change:
    owner = {"kind": act.key.kind.partition(".")[0], "name": act.name, "controller": True}
    manifest = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or name, "ownerReferences": [owner]},
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": "500m"}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": status,
    }
    return Change("modified", manifest, revision)


def node(cpu: str) -> Change:
    return Change("added", {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu}}}, 1)


def job(act: Act, status: dict[str, Any]) -> Change:
    kind = act.key.kind.partition(".")[0]
    return Change(
        "modified", {"kind": kind, "metadata": {"name": act.name, "namespace": "default"}, "status": status}, 9
    )


def names(act: Act) -> list[str]:
    return [f"{act.name}-{number}" for number in range(act.pods)]


def test_a_gang_that_got_its_nodes_in_one_revision_is_told_as_one() -> None:
    board = Board()
    lines = [line for name in names(WIDE) for line in board.fold(pod(WIDE, name, 58, node="n"), 2.0)]
    assert lines == ["wide-gang: all 5 pods got their node at once (revision 58)"]
    assert board.job(WIDE).bound_in == {58}
    assert board.job(WIDE).placed_at == 2.0


def test_pods_that_got_their_nodes_one_by_one_are_not_told_as_one() -> None:
    board = Board()
    lines = [
        line for number, name in enumerate(names(RING)) for line in board.fold(pod(RING, name, number + 1, node="n"), 0)
    ]
    assert lines == ["ring-allreduce: all 4 pods have their node"]
    assert board.job(RING).bound_in == {1, 2, 3, 4}


def test_the_board_knows_who_held_room_when_a_gang_was_placed() -> None:
    """A pod that has ended holds none, one that runs does."""
    board = Board()
    for name in names(RING):
        board.fold(pod(RING, name, node="n", phase="Succeeded"), 0)
    for name in names(TORCH):
        board.fold(pod(TORCH, name, node="n", phase="Running"), 0)
    for name in names(WIDE):
        board.fold(pod(WIDE, name, 7, node="n"), 1)
    assert board.job(WIDE).beside == ("pytorch",)


def test_a_job_runs_when_all_its_pods_do_and_that_is_told_once() -> None:
    board = Board()
    changes = [pod(TORCH, name, node="n", phase="Running") for name in names(TORCH)]
    lines = [line for change in changes + changes for line in board.fold(change, 3.0)]
    assert lines[-1] == "pytorch: all 3 pods run"
    assert len(lines) == 2
    assert board.job(TORCH).running_at == 3.0


def test_a_pod_that_was_killed_and_its_successor_are_told_apart_by_uid() -> None:
    board = Board()
    killed = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137}}}]}
    board.fold(pod(RESTARTS, VICTIM, uid="1", node="n", phase="Running"), 0)
    assert board.fold(pod(RESTARTS, VICTIM, uid="1", node="n", **killed), 1) == [f"{VICTIM}: failed with exit code 137"]
    assert board.fold(pod(RESTARTS, VICTIM, uid="2"), 2) == [
        f"{VICTIM}: a new pod takes its place, as the job's policy says"
    ]
    assert board.fold(pod(RESTARTS, VICTIM, uid="2", node="n", phase="Running"), 3) == [f"{VICTIM}: runs again"]
    assert board.job(RESTARTS).replaced == [VICTIM]


def test_a_program_that_cannot_be_started_is_told_with_the_nodes_words() -> None:
    ended = {"exitCode": 128, "message": "exec 'python': Permission denied"}
    status = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": ended}}]}
    lines = Board().fold(pod(RING, "ring-allreduce-worker-0", **status), 1)
    assert lines == ["ring-allreduce-worker-0: failed with exit code 128: exec 'python': Permission denied"]


def test_the_same_change_twice_changes_nothing_and_tells_nothing() -> None:
    board = Board()
    change = pod(RING, "ring-allreduce-0", 4, node="n", phase="Running")
    board.fold(change, 1)
    before = repr(board)
    assert board.fold(change, 2) == []
    assert repr(board) == before


def test_what_is_given_away_is_what_bound_pods_that_live_ask_for() -> None:
    board = Board()
    assert board.fold(node("8"), 0) == ["node n has 8 CPUs to give"]
    board.fold(pod(RING, "a", node="n"), 0)
    board.fold(pod(RING, "b"), 0)
    board.fold(pod(RING, "c", node="n", phase="Succeeded"), 0)
    assert (board.taken_milli, board.cpu_milli) == (500, 8000)


def test_the_end_of_a_job_is_told_with_the_reason_of_a_bad_one() -> None:
    board = Board()
    assert board.fold(job(RING, {"state": {"phase": "Running"}}), 1) == []
    assert board.fold(job(RING, {"state": {"phase": "Completed"}}), 2) == ["ring-allreduce: completed"]
    assert board.job(RING).ended_at == 2
    failed = {"conditions": [{"type": "Failed", "status": "True", "message": "backoffLimit 2 is used up"}]}
    assert board.fold(job(TORCH, failed), 3) == ["pytorch: failed: backoffLimit 2 is used up"]


def test_objects_that_are_not_the_demos_are_passed_over() -> None:
    board = Board()
    other = Act("x.yaml", RING.key._replace(name="other"), "Volcano Job", 1, "")
    assert board.fold(pod(other, "other-0", node="n", phase="Running"), 0) == []
    assert board.fold(job(other, {"state": {"phase": "Failed"}}), 0) == []
    assert board.fold(Change("bookmark", {}, 3), 0) == []
    assert all(not view.pods for view in board.jobs.values())


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({}, ""),
        ({"state": {"phase": "Restarting"}}, "Restarting"),
        ({"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]}, "Running"),
        (
            {"conditions": [{"type": "Running", "status": "False"}, {"type": "Succeeded", "status": "True"}]},
            "Succeeded",
        ),
    ],
)
def test_the_phase_is_the_jobs_own_or_its_newest_condition(status: dict[str, Any], phase: str) -> None:
    assert phase_of({"status": status}) == phase


def test_cpus_are_written_without_needless_digits() -> None:
    assert [cpus(milli) for milli in (8000, 5500, 0)] == ["8", "5.5", "0"]
