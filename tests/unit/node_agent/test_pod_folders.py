"""The folder of a pod, also where an agent was killed while it made it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.runtime.folders import PodFolder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give folders to others")
FIRST, SECOND = 60_001, 60_002


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[PodFolder]:
    made = PodFolder(tmp_path / "uid")
    yield made
    made.remove()


def look(path: Path) -> tuple[int, int, int]:
    """Its user, its group and its mode."""
    there = path.stat()
    return there.st_uid, there.st_gid, there.st_mode & 0o7777


def test_a_folder_of_an_agent_that_was_killed_before_it_noted_the_user_is_of_the_user_of_its_successor(
    folder: PodFolder,
) -> None:
    folder.create(FIRST, FIRST)
    folder.create(SECOND, SECOND)
    assert look(folder.home) == (SECOND, SECOND, 0o2770)
    assert look(folder.tmp) == (SECOND, SECOND, 0o3770)
    assert look(folder.root) == (0, SECOND, 0o710)


def test_a_folder_that_was_made_and_not_given_away_yet_is_finished(folder: PodFolder) -> None:
    folder.home.mkdir(parents=True)
    folder.create(FIRST, FIRST)
    assert look(folder.home) == (FIRST, FIRST, 0o2770)
    assert look(folder.root) == (0, FIRST, 0o710)


def test_what_its_user_made_of_a_folder_stays_so(folder: PodFolder) -> None:
    folder.create(FIRST, FIRST)
    folder.home.chmod(0o700)
    folder.create(FIRST, FIRST)
    assert look(folder.home) == (FIRST, FIRST, 0o700)
