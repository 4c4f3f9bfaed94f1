"""Every command that the documents have for a cluster works on one, in the order in which a reader comes to it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import ControlPlane

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "documents"))

from console_commands import ON_A_CLUSTER, commands_in  # noqa: E402

DOCUMENTS = ["README.md", *sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").glob("**/*.md"))]
COMMANDS = {name: list(commands_in(ROOT / name, name, ON_A_CLUSTER)) for name in DOCUMENTS}
LEFT_OUT = {".git", ".tidegate"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that looks like the clone and has a data folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tidegate-documents-") as made:
        for entry in ROOT.iterdir():
            if entry.name not in LEFT_OUT:
                (Path(made) / entry.name).symlink_to(entry)
        yield Path(made)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", [name for name in DOCUMENTS if COMMANDS[name]])
def test_the_commands_of_a_document_work_on_a_cluster(bare_plane: ControlPlane, folder: Path, name: str) -> None:
    """In one shell, as a reader has it; it ends at the first command that fails, and says which."""
    script = "".join(f"echo '# {one.place}' >&2\n{one.text}\n" for one in COMMANDS[name])
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TIDEGATE_", "PYTEST_"))}
    environment["KUBECONFIG"] = str(bare_plane.kubeconfig)
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if done.returncode:
        subprocess.run([".venv/bin/tidegate", "down"], cwd=folder, env=environment, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "way out" in done.stdout or "explain" not in script, "explain says what would help"
