"""The demo's own data folder: fresh for every run, and never somebody else's."""

import shutil
from pathlib import Path

from tidegate_cli.demo.pod_processes import left_behind
from tidegate_cli.supervisor import endpoint

MARK = "this-is-the-demos-folder"


class Unusable(Exception):
    """The folder cannot be the demo's; the text says why and what to do."""


def make_fresh(folder: Path) -> None:
    """Make ``folder`` empty. What is in it is removed only where an earlier demo made it. Raises Unusable."""
    try:
        if folder.exists() and any(folder.iterdir()):
            _remove(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARK).touch()
    except OSError as error:
        raise Unusable(f"{error.filename or folder}: {error.strerror}; choose another folder with --data-dir") from None


def _remove(folder: Path) -> None:
    if not (folder / MARK).exists():
        raise Unusable(f"{folder} is not empty and was not made by the demo; choose another folder with --data-dir")
    if endpoint.read(folder) is not None:
        raise Unusable(f"a demo is running in {folder}; wait for it to end, or choose another folder with --data-dir")
    left = left_behind(folder)
    if left:
        raise Unusable(f"an earlier demo was killed and left processes that have to be ended first: {'; '.join(left)}")
    shutil.rmtree(folder)
