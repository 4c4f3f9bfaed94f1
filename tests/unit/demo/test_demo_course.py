"""How the demo judges what came of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidegate.client import Change, Unavailable
from tidegate_cli.demo.board import Board, PodView
from tidegate_cli.demo.cast import CAST, RESTARTS, RING, VICTIM, WIDE
from tidegate_cli.demo.course import problems, result_of, verdict_of, waiting_lines
from tidegate_cli.demo.following import DemoFailed, Following

EXPLAINED = (
    "Job/default/wide-gang: Pending",
    "  0 of at least 5 pods have started",
    "PodGroup/default/wide-gang-1: Waiting (NotEnoughResources)",
    "  1 of 5 members fit, 5 are needed at once",
    "  needs cpu 1, has 1500m",
    "Pod/default/wide-gang-member-0: Waiting (NotEnoughResources)",
    "  1 of 5 members fit, 5 are needed at once",
)


@pytest.fixture
def played() -> tuple[Board, dict[str, dict[str, str]]]:
    """A board after everything went well, and what the pods wrote last."""
    board, lines = Board(), {}
    for act in CAST:
        job = board.job(act)
        job.phase, job.handed_in_at, job.placed_at = "Completed", 1.0, 8.5
        named = [f"{act.name}-worker-{number}" for number in range(act.pods)]
        job.pods = {name: PodView(name, "Succeeded", 58, 1000) for name in named}
        lines[act.name] = dict.fromkeys(job.pods, "checked: all is right")
    board.job(RESTARTS).replaced = [VICTIM]
    lines[RESTARTS.name][VICTIM] = "checked: 60 steps in life 2, went on with step 9"
    return board, lines


def test_the_reason_of_the_wait_is_the_first_verdict_that_says_so() -> None:
    assert waiting_lines(EXPLAINED) == EXPLAINED[2:5]
    assert waiting_lines(EXPLAINED[:2]) == ()
    assert waiting_lines(EXPLAINED[:3]) == EXPLAINED[2:3]


def test_a_pods_verdict_is_its_last_checked_line_and_else_its_last_line() -> None:
    assert verdict_of("round 1\nchecked: sum 6.0\na library says goodbye\n") == "checked: sum 6.0"
    assert verdict_of("round 1\nTraceback: no\n") == "Traceback: no"
    assert verdict_of("") == ""


def test_nothing_is_wrong_when_all_is_right(played: tuple[Board, dict[str, dict[str, str]]]) -> None:
    assert problems(*played) == []


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda board, lines: setattr(board.job(RING), "phase", "Failed"), "ring-allreduce ended as Failed"),
        (
            lambda board, lines: lines[RING.name].update({"ring-allreduce-worker-0": "Killed"}),
            "ring-allreduce-worker-0 checked nothing; its last line is: 'Killed'",
        ),
        (
            lambda board, lines: setattr(board.job(WIDE).pods["wide-gang-worker-0"], "bound", 57),
            "wide-gang did not start whole: its pods were bound in revisions [57, 58]",
        ),
        (
            lambda board, lines: setattr(board.job(WIDE), "beside", ("ring-allreduce",)),
            "wide-gang started before ring-allreduce had ended",
        ),
        (
            lambda board, lines: board.job(RESTARTS).replaced.clear(),
            f"of restart-policy no pod was replaced, not just {VICTIM}",
        ),
        (
            lambda board, lines: lines[RESTARTS.name].update({VICTIM: "checked: 60 steps in life 1"}),
            f"{VICTIM} did not go on behind its checkpoint",
        ),
        (
            lambda board, lines: setattr(board.job(RING).pods["ring-allreduce-worker-1"], "phase", "Failed"),
            "ring-allreduce-worker-1 ended as Failed",
        ),
    ],
)
def test_what_is_wrong_is_named(played: tuple[Board, dict[str, dict[str, str]]], spoil: Any, complaint: str) -> None:
    board, lines = played
    spoil(board, lines)
    assert problems(board, lines) == [complaint]


def test_results_say_what_was_proved(played: tuple[Board, dict[str, dict[str, str]]]) -> None:
    board, lines = played
    assert result_of(board.job(RING), lines[RING.name]) == "all is right; checked by all 4 pods"
    assert result_of(board.job(WIDE), lines[WIDE.name]) == (
        "waited 7.5 s, then 5 pods started in one decision (revision 58)"
    )
    assert result_of(board.job(RESTARTS), lines[RESTARTS.name]) == (
        f"{VICTIM}: 60 steps in life 2, went on with step 9"
    )


class Watched:
    """A client whose watch gives what it is told to, and then fails or goes on silently."""

    def __init__(self, changes: list[Change], error: Exception | None) -> None:
        self._changes, self._error = changes, error

    async def watch(self) -> AsyncIterator[Change]:
        for change in self._changes:
            yield change
        if self._error:
            raise self._error
        await asyncio.Event().wait()


NODE = Change("added", {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8"}}}, 1)


async def follow(watched: Watched, board: Board, seconds: float) -> list[str]:
    told: list[str] = []
    following = Following(watched, board, lambda: 0.0, told.append)  # type: ignore[arg-type]
    running = asyncio.create_task(following.run())
    try:
        await following.until(lambda: board.cpu_milli > 0, seconds, "the node is ready")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return told


async def test_waiting_ends_when_what_was_waited_for_has_come() -> None:
    assert await follow(Watched([NODE], None), Board(), 5.0) == ["node n has 8 CPUs to give"]


async def test_waiting_in_vain_says_for_what() -> None:
    with pytest.raises(DemoFailed, match=r"within 0\.01 s this did not happen: the node is ready"):
        await follow(Watched([], None), Board(), 0.01)


async def test_a_watch_that_breaks_ends_the_waiting() -> None:
    with pytest.raises(DemoFailed, match="no Tidegate answers"):
        await follow(Watched([], Unavailable("no Tidegate answers at x")), Board(), 5.0)


async def test_a_job_that_failed_ends_the_waiting_with_its_reason() -> None:
    status = {"state": {"phase": "Failed", "message": "that was retry 3 of 3"}}
    metadata = {"name": RING.name, "namespace": "default"}
    failed = Change("modified", {"kind": "Job", "metadata": metadata, "status": status}, 1)
    with pytest.raises(DemoFailed, match="ring-allreduce: failed: that was retry 3 of 3"):
        await follow(Watched([failed], None), Board(), 5.0)
