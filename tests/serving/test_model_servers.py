"""InferenceServices on this machine, from the manifest to the answer of a real model server."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
