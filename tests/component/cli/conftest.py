"""Fixtures of the command line's tests: a server that only pretends, and the program run in this process."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kube import Manifest
from tidegate_cli.main import run

NAME = "tidegate_server_double"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str


def _server_double() -> ModuleType:
    """The module beside this file; tests are imported by path, so it is, too."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("server_double.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        spec.loader.exec_module(module)
    return sys.modules[NAME]


@pytest.fixture
def server() -> Iterator[Any]:
    """A server with no objects."""
    double = _server_double().ServerDouble()
    yield double
    double.stop()


@pytest.fixture
def token() -> str:
    """The one token that the server knows."""
    known: str = _server_double().TOKEN
    return known


@pytest.fixture
def tidegate(
    server: Any, token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Ended]:
    """Runs one command against the server, in an empty folder: ``tidegate("get", "pods")``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_SERVER", server.address)
    monkeypatch.setenv("TIDEGATE_TOKEN", token)
    for name in ("TIDEGATE_NAMESPACE", "TIDEGATE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> Ended:
        capsys.readouterr()
        try:
            code = run(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        written = capsys.readouterr()
        return Ended(code, written.out, written.err)

    return call


@pytest.fixture
def pod() -> Callable[..., Manifest]:
    """Makes pods: ``pod("web", phase="Running", labels={"app": "web"})``."""

    def make(name: str, phase: str = "Running", namespace: str = "default", **parts: Any) -> Manifest:
        metadata = {"name": name, "namespace": namespace, "creationTimestamp": "2026-01-01T00:00:00Z"}
        for part in ("labels", "ownerReferences", "annotations", "uid"):
            if part in parts:
                metadata[part] = parts.pop(part)
        requests = parts.pop("requests", {"cpu": "1", "memory": "1Gi"})
        containers = [{"name": one, "resources": {"requests": requests}} for one in parts.pop("containers", ["main"])]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": containers, **parts},
            "status": {"phase": phase},
        }

    return make


@pytest.fixture
def job() -> Manifest:
    """A job that is stored as ``job/ring``."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "ring", "namespace": "default", "uid": "uid-ring"},
        "spec": {"minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2}]},
        "status": {"state": {"phase": "Pending"}},
    }
