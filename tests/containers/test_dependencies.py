"""An image holds what its service needs: what its project and those of our libraries name is what the code imports."""

import ast
import runpy
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from tidegate.services import SERVICES

ROOT = Path(__file__).parents[2]
IMAGES = (*SERVICES, "model_agent", "graph_router")
"""Of services, and of the programs in pods of models and graphs whose packages are of our lock."""


def needs(service: str) -> tuple[list[str], list[str]]:
    """Packages of others and folders of our own, as the image's build finds them."""
    program: dict[str, Any] = runpy.run_path(str(ROOT / "deploy" / "images" / "dependencies.py"))
    others, own = program["needs"](ROOT, service)
    return others, own


def imported(folder: Path) -> set[str]:
    """The top-level modules that the code below ``folder`` imports, wherever it does; servers run in environments of their own."""
    found: set[str] = set()
    for file in (one for one in folder.glob("**/*.py") if one.parent.name != "servers"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


@pytest.mark.parametrize("service", IMAGES)
def test_what_the_code_of_an_image_imports_is_in_the_image(service: str) -> None:
    others, own = needs(service)
    there = {entry.name.removesuffix(".py") for folder in own for entry in (ROOT / folder).iterdir()}
    wanted = {module for folder in own for module in imported(ROOT / folder)} - there
    providers = packages_distributions()
    spelled = {name.lower().replace("_", "-") for name in others}
    absent = {
        module for module in wanted if not {name.lower().replace("_", "-") for name in providers[module]} & spelled
    }
    assert absent == set()


@pytest.mark.parametrize("service", IMAGES)
def test_an_image_holds_no_other_service_and_no_test_library(service: str) -> None:
    _, own = needs(service)
    assert [folder for folder in own if folder.startswith("services/")] == [f"services/{service}/src"]
    assert "libs/testing/src" not in own
