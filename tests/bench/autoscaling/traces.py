"""The public traces of requests to language models at Azure (2023): when requests come and how long each keeps a slot busy.

Ten copies of a trace, each a little later than the one before, make a service of some size and keep its bursts. A slot reads 8,000 tokens
a second and writes one in 30 ms.
"""

import csv
import gzip
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import numpy as np
from tests.bench.autoscaling.queue_model import Floats, Requests

FOLDER = "TIDEGATE_AZURE_LLM"
ELSEWHERE = """no traces in {folder}.
They are public: https://github.com/Azure/AzurePublicDataset, folder data. Put AzureLLMInferenceTrace_code.csv and _conv.csv
(or .csv.gz) into one folder and name it in the environment variable TIDEGATE_AZURE_LLM."""
CODE, CONV = "code", "conv"

READ_TOKENS_PER_SECOND, SECONDS_PER_WRITTEN_TOKEN = 8000.0, 0.030
COPIES, APART_SECONDS = 10, 0.37


def folder() -> Path:
    """Where the data is; raises SystemExit saying how to get it."""
    if not are_there():
        raise SystemExit(ELSEWHERE.format(folder=_named()))
    return _named()


def are_there() -> bool:
    """Whether the traces are on this machine."""
    return any(_named().glob(f"AzureLLMInferenceTrace_{CODE}.csv*"))


def _named() -> Path:
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "azure-llm"
    return Path(os.environ.get(FOLDER) or beside)


def read(data: Path, name: str) -> Requests:
    """One copy of the trace of that name, from its first request on."""
    rows = [(_seconds(row["TIMESTAMP"]), _served(row)) for row in _rows(data, name)]
    arrive, serve = np.array(rows).T
    return Requests(arrive - arrive[0], serve)


def superposed(one: Requests, seed: int) -> Requests:
    """Ten copies. With seed 0 they are exactly 0.37 s apart; with another, each is moved by up to so much more."""
    draw = np.random.default_rng(seed)
    moved = draw.uniform(0, APART_SECONDS, COPIES) if seed else np.zeros(COPIES)
    later = np.arange(COPIES) * APART_SECONDS + moved
    return in_order((one.arrive[None, :] + later[:, None]).ravel(), np.tile(one.serve, COPIES))


def in_order(arrive: Floats, serve: Floats) -> Requests:
    """The requests by the time when they come."""
    order = np.argsort(arrive, kind="stable")
    return Requests(arrive[order], serve[order])


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp[:26]).timestamp()


def _served(row: Mapping[str, str]) -> float:
    read, written = int(row["ContextTokens"]), int(row["GeneratedTokens"])
    return read / READ_TOKENS_PER_SECOND + written * SECONDS_PER_WRITTEN_TOKEN


def _rows(data: Path, name: str) -> Iterator[Mapping[str, str]]:
    plain = data / f"AzureLLMInferenceTrace_{name}.csv"
    with plain.open() if plain.exists() else gzip.open(f"{plain}.gz", "rt") as text:
        yield from csv.DictReader(text)
