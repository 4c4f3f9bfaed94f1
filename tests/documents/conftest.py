"""Tests of the documents. The modules beside this file are shared with `generate.py`, which is run as a program."""

import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)
