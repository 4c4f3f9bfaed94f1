"""What tests of whole systems with model servers share."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "serving"
RUNTIMES = [*yaml.safe_load_all((EXAMPLES / "runtimes.yaml").read_text())]
SERVING_SECONDS = 120.0
"""How long a server may take until it serves."""


def system_tools() -> Any:
    """The module that runs a whole system; tests are imported by path, so it is, too."""
    known = "tidegate_system_conftest"
    spec = importlib.util.spec_from_file_location(known, ROOT / "tests" / "system" / "conftest.py")
    assert spec and spec.loader
    module = sys.modules[known] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
