"""What a service is made of, by the projects' own files: `dependencies.py SERVICE` prints the packages of others that it needs,
`dependencies.py --own SERVICE` the folders of our own packages. Runs while an image is built, with the standard library only.
"""

import re
import sys
import tomllib
from pathlib import Path


def projects(root: Path) -> dict[str, Path]:
    """The folder of each of our projects by its name."""
    files = (*root.glob("libs/*/pyproject.toml"), *root.glob("services/*/pyproject.toml"))
    return {str(_project(file)["name"]): file.parent for file in files}


def needs(root: Path, service: str) -> tuple[list[str], list[str]]:
    """The packages of others and the folders of our own ones that ``service`` needs, itself included, both in order."""
    ours = projects(root)
    others: set[str] = set()
    found: set[str] = set()
    waiting = [str(_project(root / "services" / service / "pyproject.toml")["name"])]
    while waiting:
        name = waiting.pop()
        if name not in ours:
            others.add(name)
        elif name not in found:
            found.add(name)
            waiting.extend(
                re.split(r"[^\w.-]", need)[0] for need in _project(ours[name] / "pyproject.toml")["dependencies"]
            )
    return sorted(others), sorted(str(ours[name].relative_to(root) / "src") for name in found)


def _project(file: Path) -> dict[str, list[str]]:
    project: dict[str, list[str]] = tomllib.loads(file.read_text())["project"]
    return project


if __name__ == "__main__":
    print(*needs(Path.cwd(), sys.argv[-1])["--own" in sys.argv], sep="\n")
