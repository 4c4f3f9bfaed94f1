"""Fixtures of the job controller's tests: a cluster that only pretends."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

NAME = "job_controller_cluster_double"


def _cluster_double() -> ModuleType:
    """The module beside this file; tests are imported by path, so it is, too."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("cluster_double.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        spec.loader.exec_module(module)
    return sys.modules[NAME]


@pytest.fixture
def make_cluster() -> Callable[..., Any]:
    """Makes clusters: ``make_cluster(pod_start="manual", termination="30s")``."""
    make: Callable[..., Any] = _cluster_double().ClusterDouble
    return make


@pytest.fixture
def cluster(make_cluster: Callable[..., Any]) -> Any:
    """A cluster in which pods run as soon as they are made."""
    return make_cluster()


@pytest.fixture
def job() -> Callable[..., str]:
    """Writes Volcano Jobs: ``job("j", tasks="{name: w, replicas: 2}", maxRetry=3)``."""
    write: Callable[..., str] = _cluster_double().volcano_job
    return write
