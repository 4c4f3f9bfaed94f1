"""InferenceServices on this machine, from the manifest to the answer of a real model server."""

import importlib.util
import json
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from open_inference import infer_by_grpc, ready_by_grpc

from kube import Manifest
from tests.serving.conftest import environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
