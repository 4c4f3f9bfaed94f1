"""The cases in the tree are a copy of the shared ones, byte for byte."""

from pathlib import Path

import pytest

COPY = Path(__file__).parent / "cases"
SHARED = Path(__file__).parents[3] / "shared" / "cases"


def _texts(root: Path) -> dict[str, bytes]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there are no shared cases at {SHARED} to compare with")
def test_the_cases_are_those_that_are_shared() -> None:
    copy, shared = _texts(COPY), _texts(SHARED)
    differing = sorted(name for name in copy.keys() | shared.keys() if copy.get(name) != shared.get(name))
    assert differing == [], "copy the shared cases over tests/scenarios/cases"
