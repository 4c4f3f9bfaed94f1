"""The list of programs that stand in for images, read from files, and where on this machine their words lead."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from node_agent.domain.programs import Program, ProgramError, filled

DEFAULTS = Path(__file__).with_name("programs.yaml")
SERVERS = Path(__file__).with_name("servers")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"lib/python{VERSION}/site-packages"
"""Of an environment, below its folder."""
PROGRAMS = ("storage_initializer", "model_agent", "graph_router")
"""Our own that stand in for images. No code imports them."""
INSTALLED = "installed.txt"
"""The file in the folder of an environment that is complete; it says what was installed."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment of its own: what is installed in it, and files that are copied there afterwards."""

    requirements: tuple[str, ...]
    copies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProgramList:
    """Programs in the order in which they are looked through, and the environments that they run in, by name."""

    programs: tuple[Program, ...] = ()
    environments: Mapping[str, Environment] = field(default_factory=dict)


def default_folder() -> Path:
    """Where environments are, unless somebody says otherwise: in the user's cache, or the machine's for one without a home."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        cache = Path(given) if given else Path.home() / ".cache"
    except RuntimeError:
        cache = Path("/var/cache")
    return cache / "tidegate" / "environments"


def read_list(file: Path | None) -> ProgramList:
    """The programs of ``file``, and behind them those that everybody has; raises ProgramError with file and key."""
    own = _read(file) if file is not None else ProgramList()
    shared = _read(DEFAULTS)
    return ProgramList((*own.programs, *shared.programs), {**shared.environments, **own.environments})


def places(environments: Path, environment: str, pod_ip: str, inference_gateway: str) -> dict[str, str]:
    """What the ``{names}`` of a program's words stand for."""
    return {
        "python": sys.executable,
        "environment": str(environments / environment),
        "environments": str(environments),
        "packages": PACKAGES,
        "servers": str(SERVERS),
        **{f"site:{package}": _site(package) for package in PROGRAMS},
        "version": VERSION,
        "pod_ip": pod_ip,
        "inference_gateway": inference_gateway,
    }


def environment_words(words: str) -> str:
    """A path below an environment's folder, with its names replaced."""
    return filled(words, {"packages": PACKAGES, "version": VERSION})


def reach(environments: Path, environment: str) -> list[str]:
    """The paths that a container's user must be able to get to for its program to run."""
    found = [environments, SERVERS]
    found += [Path(site) for site in map(_site, PROGRAMS) if site]
    python = environments / environment / "bin" / "python"
    if environment and python.exists():
        found.append(python.resolve().parents[1])
    return [str(path) for path in found if path.exists()]


def _site(package: str) -> str:
    """The folder that has the package; "" where it is not installed."""
    found = importlib.util.find_spec(package)
    return str(Path(found.origin).parents[1]) if found is not None and found.origin else ""


def _read(file: Path) -> ProgramList:
    try:
        data: dict[str, Any] = yaml.safe_load(file.read_text()) or {}
        unknown = sorted(data.keys() - {"programs", "environments"})
        if unknown:
            raise ProgramError(f"unknown keys {', '.join(unknown)}; there are environments, programs")
        programs = tuple(Program.of(one) for one in data.get("programs") or ())
        environments = {str(name): _environment(one) for name, one in (data.get("environments") or {}).items()}
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProgramError(f"{file}: {error}") from None
    return ProgramList(programs, environments)


def _environment(given: dict[str, Any]) -> Environment:
    unknown = sorted(given.keys() - {"requirements", "copies"})
    if unknown or not given.get("requirements"):
        raise ProgramError(f"an environment has requirements, and may have copies: {given!r}")
    copies = {str(source): str(target) for source, target in (given.get("copies") or {}).items()}
    return Environment(tuple(str(one) for one in given["requirements"]), copies)
