"""The demo as people start it: it shows what it promises, ends by itself, and leaves nothing behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate_cli.demo.pod_processes import left_behind

CLONE = Path(__file__).resolve().parents[2]
LONGEST_SECONDS = 150
NOBODY = 65_534


class Stage:
    """Where one demo is played: a place for its data, and an empty home, working and temporary folder beside it."""

    def __init__(self, root: Path) -> None:
        self.data, self.home = root / "data", root / "home"
        self.home.mkdir()
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *before: str) -> "subprocess.Popen[str]":
        """Start the demo, behind the words of another command if there are any."""
        home = str(self.home)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
        environment = {**kept, "HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [*before, sys.executable, "-m", "tidegate_cli.demo", "--data-dir", str(self.data)]
        demo = subprocess.Popen(
            command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._started.append(demo)
        return demo

    def close(self) -> None:
        """End a demo that a failed test left running, its system first."""
        for demo in self._started:
            if demo.poll() is None:
                demo.terminate()
                try:
                    demo.communicate(timeout=30)
                except subprocess.TimeoutExpired:
                    demo.kill()
            demo.communicate()

    def check_nothing_is_left(self) -> None:
        """No process that has to do with the demo, no file beside its data folder."""
        assert left_behind(self.data) == []
        assert list(self.home.iterdir()) == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stage that pods' users may pass through."""
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as name:
        Path(name).chmod(0o711)
        made = Stage(Path(name))
        try:
            yield made
        finally:
            made.close()


def check_what_was_shown(output: str) -> None:
    """All that the demo promises, in the order in which it has to happen."""
    in_order = (
        "> apply -f examples/ring-allreduce.yaml",
        "ring-allreduce: all 4 pods got their node at once",
        "> apply -f examples/wide-gang.yaml",
        "Waiting (NotEnoughResources)",
        "> kill -9 ",
        "restart-policy-worker-1: failed with exit code 137",
        "restart-policy-worker-1: a new pod takes its place",
        "wide-gang: all 5 pods got their node at once",
        "What was shown",
        "no process is left",
        "What to try next",
    )
    places = [output.find(text) for text in in_order]
    assert -1 not in places, in_order[places.index(-1)] + "\n" + output
    assert places == sorted(places), output
    told = re.sub(r"[│┃\s]+", " ", output)
    for fact in ("sum 6.0 over 4 ranks", "weight 3.000 on 3 ranks", "checked by all 4 pods", "pytorch: succeeded"):
        assert fact in told, output
    assert re.search(r"60 steps in life 2, went on with step \d+", told), output
    assert re.search(r"waited \d+\.\d s, then 5 pods started in one decision", told), output
    assert "members of wide-gang" in told
    assert re.search(r"Insufficient cpu \(needs 1, most free \w+ on \w+\)\. \d of 5 .* 5 are needed at once", told), (
        output
    )


@pytest.mark.system
@pytest.mark.timeout(LONGEST_SECONDS + 20)
def test_the_demo_shows_what_it_promises_and_leaves_nothing(stage: Stage) -> None:
    demo = stage.start()
    output = demo.communicate(timeout=LONGEST_SECONDS)[0]
    assert demo.returncode == 0, output
    check_what_was_shown(output)
    stage.check_nothing_is_left()


@pytest.mark.system
@pytest.mark.timeout(LONGEST_SECONDS + 20)
@pytest.mark.skipif(os.geteuid() != 0, reason="the test before this one has shown it for an ordinary user")
def test_the_demo_needs_no_root(stage: Stage) -> None:
    """The same for a user without rights, where this machine has a Python that such a user may run."""
    # The rights of root are gone only with the second program: by way of `env` Python itself is found without them.
    as_nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env")
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv here")
    trial = subprocess.run([*as_nobody, sys.executable, "-c", "import tidegate_cli"], capture_output=True)
    if trial.returncode:
        pytest.skip(f"another user may not run {sys.executable}: {trial.stderr.decode().strip()}")
    os.chown(stage.home, NOBODY, NOBODY)
    stage.data.mkdir()
    os.chown(stage.data, NOBODY, NOBODY)
    demo = stage.start(*as_nobody)
    output = demo.communicate(timeout=LONGEST_SECONDS)[0]
    assert demo.returncode == 0, output
    check_what_was_shown(output)
    stage.check_nothing_is_left()


@pytest.mark.system
@pytest.mark.timeout(LONGEST_SECONDS)
@pytest.mark.parametrize("moment", ["> up:", "pytorch: all 3 pods run"])
def test_an_interrupted_demo_leaves_nothing_either(stage: Stage, moment: str) -> None:
    demo = stage.start()
    assert demo.stdout is not None
    while moment not in (line := demo.stdout.readline()):
        assert line, "it ended too soon"
    demo.send_signal(signal.SIGINT)
    output = demo.communicate(timeout=90)[0]
    assert demo.returncode == 130, output
    assert "The demo was interrupted." in output
    stage.check_nothing_is_left()


@pytest.mark.system
def test_a_demo_that_cannot_start_says_why(stage: Stage) -> None:
    stage.data.mkdir()
    (stage.data / "thesis.tex").touch()
    demo = stage.start()
    output = demo.communicate(timeout=90)[0]
    assert demo.returncode == 1
    assert "was not made by the demo; choose another folder with --data-dir" in output
    assert [entry.name for entry in stage.data.iterdir()] == ["thesis.tex"]
