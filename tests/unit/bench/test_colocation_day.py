"""The benchmark of a day with and without lending, over a few minutes of two nodes."""

from pathlib import Path

import pytest
from tests.bench.colocation.day import Day, figures, play
from tests.bench.colocation.day_pictures import draw
from tests.bench.figures import failed


@pytest.fixture(scope="module")
def days() -> tuple[Day, Day]:
    before, after = (play(lends, nodes=2, minutes=5, warm=12) for lends in (False, True))
    return before, after


def test_batch_work_takes_what_the_same_online_load_leaves(days: tuple[Day, Day]) -> None:
    before, after = days
    assert before.online == after.online and len(after.online) == 5
    assert before.use_percent() < 35 and not any(before.batch) and not any(before.lent)
    assert 70 < after.use_percent() <= 80
    assert all(used <= lent for used, lent in zip(after.batch, after.lent, strict=True))
    assert after.served_percent() == 100 and after.evicted == 0


def test_a_day_that_is_played_again_is_the_same(days: tuple[Day, Day]) -> None:
    assert play(True, nodes=2, minutes=5, warm=12) == days[1]


def test_both_pictures_are_drawn(days: tuple[Day, Day], tmp_path: Path) -> None:
    drawn = draw(*days, tmp_path / "pictures")
    assert [file.name for file in drawn] == ["colocation-use.png", "colocation-amounts.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in drawn)


def test_a_day_in_which_online_pods_wait_or_nodes_idle_misses_its_goals(days: tuple[Day, Day]) -> None:
    before, after = days
    assert not failed(figures(before, after))
    hurt = Day(2, after.online, after.batch, after.requested, after.lent, crowded_seconds=1)
    assert hurt.served_percent() == pytest.approx(100 - 100 / 600)
    assert [one.reached for one in figures(before, hurt)] == [True, False, None, None]
    assert [one.reached for one in figures(before, before)] == [False, True, None, None]
    assert failed(figures(before, hurt)) and failed(figures(before, before))
