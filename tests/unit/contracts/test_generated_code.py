"""The code that is generated from proto/ and committed is the one that comes out today."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "libs/contracts/src"


def generated(folder: Path) -> dict[str, str]:
    """What is generated in a folder, by path."""
    files = [file for file in sorted(folder.rglob("*_pb2*")) if file.suffix in (".py", ".pyi")]
    return {str(file.relative_to(folder)): file.read_text() for file in files}


def test_the_committed_code_is_what_comes_out(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["libs/contracts/generate.sh", str(tmp_path)], cwd=ROOT, env=environment, check=True, timeout=60)
    fresh, committed = generated(tmp_path), generated(COMMITTED)
    assert fresh.keys() == committed.keys()
    assert [name for name in fresh if fresh[name] != committed[name]] == []
