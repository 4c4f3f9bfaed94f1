"""The file by which commands find a running system in its data folder."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "endpoint.json"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API is, and the supervisor's process. ``started`` tells a later process with the same id apart.

    ``requests`` is where inference services are asked.
    """

    server: str
    token_file: str
    pid: int
    started: str
    children: dict[str, int]
    requests: str = ""


def write(data_dir: Path, endpoint: Endpoint) -> None:
    """Replace the file as a whole."""
    fresh = data_dir / f"{NAME}.new"
    fresh.write_text(json.dumps(asdict(endpoint), indent=2) + "\n")
    fresh.replace(data_dir / NAME)


def read(data_dir: Path) -> Endpoint | None:
    """The endpoint of the system that runs in ``data_dir``; None when none does."""
    try:
        found = Endpoint(**json.loads((data_dir / NAME).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return found if start_time(found.pid) == found.started else None


def remove(data_dir: Path) -> None:
    """The system has ended."""
    (data_dir / NAME).unlink(missing_ok=True)


def start_time(pid: int) -> str:
    """When the process began, in the kernel's clock ticks since boot; "" when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def mine(server: str, token_file: str, children: dict[str, int], requests: str) -> Endpoint:
    """The endpoint of a system that this process supervises."""
    return Endpoint(server, token_file, os.getpid(), start_time(os.getpid()), children, requests)
