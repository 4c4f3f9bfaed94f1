"""Programs of Debian's packages, taken out of them without installing anything; kept for the next time."""

import shutil
import subprocess
import tempfile
from pathlib import Path

CACHE = Path.home() / ".cache" / "tidegate" / "debian"


class NoProgram(Exception):
    """It is not here, and cannot be had; the text says why."""


def program(package: str, place: str) -> Path:
    """The file ``place`` of ``package``: what is installed, what was kept, or what a mirror of Debian has. Raises NoProgram."""
    if (found := shutil.which(Path(place).name)) is not None:
        return Path(found)
    kept = CACHE / package / place
    if not kept.exists():
        _unpack(package)
    if not kept.exists():
        raise NoProgram(f"the package {package} has no {place}")
    return kept


def _unpack(package: str) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True, timeout=120)
            (archive,) = Path(folder).glob("*.deb")
            subprocess.run(
                ["dpkg-deb", "-x", str(archive), str(CACHE / package)], check=True, capture_output=True, timeout=120
            )
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise NoProgram(f"{package}: {error}; apt-get install {package}") from None
