"""Tilt on a copy of the checkout, in which files may be changed. It is looked for on the PATH and beside the lab's programs."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import images
from daemon import NoDocker

from testing.background import process

COPIED = ("Tiltfile", "compose.yaml", "requirements.lock", "deploy", "libs", "services", "examples")
UNSEEN = ("--port", "0", "--web-mode", "prod")
"""Nobody looks at its pages."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate" / "kubernetes-lab" / "tilt"


@dataclass(frozen=True, slots=True)
class Tilt:
    """The program, on a checkout of its own; ``flags`` are those of the Tiltfile."""

    program: str
    checkout: Path
    flags: tuple[str, ...]
    environment: dict[str, str]

    def ci(self, seconds: float) -> "subprocess.CompletedProcess[str]":
        return self._run("ci", *UNSEEN, "--timeout", f"{seconds:.0f}s", seconds=seconds + 60)

    def down(self, seconds: float) -> None:
        self._run("down", "--delete-volumes", seconds=seconds)

    def up(self, log: Path) -> "AbstractContextManager[subprocess.Popen[bytes]]":
        """Until the end of the context; what it says, and what services say, is in ``log``."""
        return process(self._command("up", *UNSEEN, "--stream"), log, self.environment, self.checkout)

    def mark(self, file: str) -> str:
        """Change a module so that it says a word when it is loaded; the word."""
        marker, place = f"changed {secrets.token_hex(4)}", self.checkout / file
        place.write_text(f"print({marker!r}, flush=True)\n" + place.read_text())
        return marker

    def _command(self, verb: str, *words: str) -> list[str]:
        return [self.program, verb, *words, *(("--", *self.flags) if self.flags else ())]

    def _run(self, verb: str, *words: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self._command(verb, *words),
            cwd=self.checkout,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def checked_out(folder: Path, base: str, flags: Sequence[str], variables: Mapping[str, str]) -> Tilt:
    """Tilt in ``folder``, to build on the image ``base``. Raises NoDocker where it is not installed."""
    program = shutil.which("tilt", path=f"{os.environ.get('PATH', '')}:{CACHE}")
    if program is None:
        raise NoDocker("tilt is not installed")
    for name in COPIED:
        place = images.ROOT / name
        if place.is_dir():
            shutil.copytree(place, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, folder / name)
    environment = {
        **os.environ,
        # The example is run with the command line of this environment.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TILT_DISABLE_ANALYTICS": "1",
        **variables,
    }
    return Tilt(program, folder, (*(("--no-registry",) if base == images.DEBIAN else ()), *flags), environment)


def eventually(holds: Callable[[], bool], seconds: float, said: Callable[[], str]) -> None:
    """Raises AssertionError with the end of what is ``said``."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not within {seconds:g} s: {said()[-3000:]}"
        time.sleep(0.1)
