"""Makes the environments that programs run in. Nothing does so by itself: `tidegate install` is asked to."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from node_agent.program_list import INSTALLED, Environment, environment_words

CommandRunner = Callable[[list[str]], None]


class InstallFailed(RuntimeError):
    """An environment could not be made; what there is of it does not count as installed."""


def is_installed(folder: Path, environment: Environment) -> bool:
    """Whether ``folder`` holds all that ``environment`` asks for."""
    stamp = folder / INSTALLED
    return stamp.is_file() and stamp.read_text() == _stamp(environment)


def install(folder: Path, environment: Environment, run: CommandRunner | None = None) -> bool:
    """See that ``folder`` is ``environment``; False where it was already. Raises InstallFailed.

    Who is stopped in the middle of it leaves something that is not installed, and goes on from there.
    """
    if is_installed(folder, environment):
        return False
    run = run or _run
    (folder / INSTALLED).unlink(missing_ok=True)
    python = folder / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", str(folder)])
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *environment.requirements])
    for source, target in environment.copies.items():
        place = folder / environment_words(target)
        try:
            shutil.copyfile(folder / environment_words(source), place)
            place.chmod(0o755)
        except OSError as error:
            raise InstallFailed(f"{error.filename}: {error.strerror}") from None
    (folder / INSTALLED).write_text(_stamp(environment))
    return True


def _stamp(environment: Environment) -> str:
    return "".join(f"{line}\n" for line in (*environment.requirements, *environment.copies))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InstallFailed(f"{' '.join(command[:4])} … ended with {done.returncode}: {' '.join(said[-3:])}")
