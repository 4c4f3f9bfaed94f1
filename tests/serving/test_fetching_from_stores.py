"""Models from stores, by the stores' own clients: S3 from an endpoint on this machine, and a hub."""

import io
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = os.urandom(6_000_000)
KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
Fetched = Callable[..., "subprocess.Popen[str]"]


def names(folder: Path) -> dict[str, int]:
    return {str(one.relative_to(folder)): one.stat().st_size for one in sorted(folder.rglob("*")) if not one.is_dir()}


def done(process: "subprocess.Popen[str]") -> str:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def refused(process: "subprocess.Popen[str]") -> str:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    return said.strip().splitlines()[-1]


@pytest.fixture(scope="session")
def bucket(s3: Any) -> str:
    s3.put("models")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        info = tarfile.TarInfo("echo/1/model.py")
        info.size = 3
        made.addfile(info, io.BytesIO(b"abc"))
    for key, data in {
        "echo/config.pbtxt": b"name", "echo/1/model.py": b"x", "echo/1/__init__.py": b"", "echo/1/": b"",
        "echo2/other": b"y", "one/model.joblib": b"z", "packed/m.tar.gz": packed.getvalue(), "large/weights": DATA,
    }.items():  # fmt: skip
        s3.put(f"models/{key}", data)
    s3.put("models/public/model.joblib", b"z", **{"x-amz-acl": "public-read"})
    return "models"


def test_all_below_a_prefix_is_fetched_and_nothing_beside_it(
    s3: Any, bucket: str, fetched: Fetched, tmp_path: Path
) -> None:
    """Files without content, too; KServe leaves those out, and takes all whose key begins alike."""
    done(fetched("s3://models/echo", tmp_path / "m", AWS_ENDPOINT_URL=s3.url, **KEYS))
    assert names(tmp_path / "m") == {"1/__init__.py": 0, "1/model.py": 1, "config.pbtxt": 4}


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("s3://models/one/model.joblib", {"model.joblib": 1}),
        ("s3://models/one/", {"model.joblib": 1}),
        ("s3://models/packed", {"echo/1/model.py": 3}),
        ("s3://models/packed/m.tar.gz", {"echo/1/model.py": 3}),
    ],
)
def test_one_object_is_a_file_and_an_archive_is_what_is_in_it(
    s3: Any, bucket: str, fetched: Fetched, tmp_path: Path, uri: str, found: dict[str, int]
) -> None:
    done(fetched(uri, tmp_path / "m", AWS_ENDPOINT_URL=s3.url, **KEYS))
    assert names(tmp_path / "m") == found


def test_an_anonymous_client_sends_no_credentials(s3: Any, bucket: str, fetched: Fetched, tmp_path: Path) -> None:
    anonymous = {"AWS_ENDPOINT_URL": s3.url, "awsAnonymousCredential": "true"}
    done(fetched("s3://models/public", tmp_path / "m", **anonymous))
    assert "403" in refused(fetched("s3://models/one", tmp_path / "n", **anonymous))
    assert names(tmp_path / "m") == {"model.joblib": 1}


@pytest.mark.parametrize(
    ("uri", "variables", "said"),
    [
        ("s3://models/none", KEYS, "there is nothing of that name in bucket models"),
        ("s3://nobody/m", KEYS, "NoSuchBucket"),
        ("s3://models/one", {"AWS_EC2_METADATA_DISABLED": "true"}, "name a Secret with AWS_ACCESS_KEY_ID"),
        ("s3://models/one", {**KEYS, "AWS_CA_BUNDLE": "/nowhere.crt"}, "/nowhere.crt, which is not there"),
    ],
)
def test_what_cannot_be_fetched_is_said(
    s3: Any, bucket: str, fetched: Fetched, tmp_path: Path, uri: str, variables: dict[str, str], said: str
) -> None:
    assert said in refused(fetched(uri, tmp_path / "m", AWS_ENDPOINT_URL=s3.url, **variables))
    assert names(tmp_path / "m") == {}


def test_a_line_that_breaks_is_gone_on_with(s3: Any, line: Any, bucket: str, fetched: Fetched, tmp_path: Path) -> None:
    line.cuts = [4_000_000, 1_500_000]
    said = done(fetched("s3://models/large", tmp_path / "m", AWS_ENDPOINT_URL=f"http://127.0.0.1:{line.port}", **KEYS))
    assert (tmp_path / "m" / "weights").read_bytes() == DATA
    assert line.cuts == [] and "again in" in said
    assert line.carried < 1.5 * len(DATA), "what had come was fetched again"


def test_who_is_killed_in_the_midst_goes_on_where_it_was(
    s3: Any, line: Any, bucket: str, fetched: Fetched, tmp_path: Path
) -> None:
    line.cuts, line.hangs = [4_000_000], True
    endpoint = f"http://127.0.0.1:{line.port}"
    first = fetched("s3://models/large", tmp_path / "m", AWS_ENDPOINT_URL=endpoint, **KEYS)
    assert line.reached.wait(60)
    until = time.monotonic() + 60
    while sum(names(tmp_path / "m").values()) < 2_000_000 and time.monotonic() < until:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    have = sum(names(tmp_path / "m").values())
    assert have >= 2_000_000 and not (tmp_path / "m" / "weights").exists()
    before, line.hangs = line.carried, False
    done(fetched("s3://models/large", tmp_path / "m", AWS_ENDPOINT_URL=endpoint, **KEYS))
    assert (tmp_path / "m" / "weights").read_bytes() == DATA
    assert names(tmp_path / "m") == {"weights": len(DATA)}
    assert line.carried - before < len(DATA) - have + 100_000, "what had come was fetched again"


def test_an_endpoint_that_is_not_there_is_given_up(fetched: Fetched, tmp_path: Path) -> None:
    said = refused(fetched("s3://models/m", tmp_path / "m", AWS_ENDPOINT_URL="http://127.0.0.1:9", **KEYS))
    assert "EndpointConnectionError" in said and "6 tries" in said


REPOSITORY = {"config.json": b"{}", "model.safetensors": DATA, "onnx/a.onnx": b"x"}


@pytest.mark.parametrize("revision", ["", ":v1"])
def test_a_repository_of_a_hub_is_fetched_with_lines_that_break(
    hub: Any, fetched: Fetched, tmp_path: Path, revision: str
) -> None:
    hub.repositories["acme/tiny"], hub.cuts = REPOSITORY, [2_000_000, 1_000_000]
    done(fetched(f"hf://acme/tiny{revision}", tmp_path / "m", HF_ENDPOINT=hub.url))
    assert names(tmp_path / "m") == {name: len(data) for name, data in REPOSITORY.items()}
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == DATA


def test_a_private_repository_is_fetched_with_the_token(hub: Any, fetched: Fetched, tmp_path: Path) -> None:
    hub.repositories["acme/secret"], hub.private = {"config.json": b"{}"}, {"acme/secret": "hf_token"}
    said = refused(fetched("hf://acme/secret", tmp_path / "m", HF_ENDPOINT=hub.url))
    assert "HF_TOKEN is not set" in said
    done(fetched("hf://acme/secret", tmp_path / "m", HF_ENDPOINT=hub.url, HF_TOKEN="hf_token"))
    assert names(tmp_path / "m") == {"config.json": 2}


def test_a_revision_that_there_is_not_is_said(hub: Any, fetched: Fetched, tmp_path: Path) -> None:
    hub.repositories["acme/tiny"] = {"config.json": b"{}"}
    assert "no revision v9" in refused(fetched("hf://acme/tiny:v9", tmp_path / "m", HF_ENDPOINT=hub.url))


def test_a_hub_that_is_overloaded_is_asked_again(hub: Any, fetched: Fetched, tmp_path: Path) -> None:
    hub.repositories["acme/tiny"], hub.failing = {"config.json": b"{}"}, [503, 503, 503]
    done(fetched("hf://acme/tiny", tmp_path / "m", HF_ENDPOINT=hub.url))
    assert names(tmp_path / "m") == {"config.json": 2}
