"""``s3://``: the objects below a prefix, from any endpoint that speaks S3, with what KServe's Secrets say of it."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from storage_initializer.failures import FetchError, Interrupted
from storage_initializer.retries import insist
from storage_initializer.room import check_room, saying_full
from storage_initializer.staging import PART, Staging

AT_A_TIME = 4
_CHUNK_BYTES = 1 << 20
_PASSING = {"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "500", "502", "503", "504"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One object: its key, the file of the model that it is, its size and what the endpoint calls this version of it."""

    key: str
    name: str
    size_bytes: int
    tag: str


def fetch(uri: str, staging: Staging) -> None:
    """Fetch the object that ``uri`` names, or all below it. Raises FetchError."""
    bucket, path = urlsplit(uri).netloc, urlsplit(uri).path.strip("/")
    if not bucket:
        raise FetchError(f"{uri} names no bucket")
    client = _client()
    entries = list(_entries(client, bucket, path, uri))
    if not entries:
        raise FetchError(f"{uri}: there is nothing of that name in bucket {bucket}")
    check_room(staging.root, sum(entry.size_bytes for entry in entries))
    places = [
        staging.file(entry.name) for entry in entries
    ]  # all checked, and their folders made, before the first byte
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        for done in [
            threads.submit(_fetch_one, client, bucket, entry, place)
            for entry, place in zip(entries, places, strict=True)
        ]:
            done.result()


def _client() -> Any:
    """A client by the variables that KServe sets. Raises FetchError where the library is not there."""
    try:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
    except ImportError:
        raise FetchError("s3:// needs the package boto3: run `tidegate install storage`") from None
    told = os.environ.get
    endpoint = told("AWS_ENDPOINT_URL") or None
    style = "virtual" if _is_true(told("S3_USER_VIRTUAL_BUCKET")) else "path" if endpoint else "auto"
    anonymous = {"signature_version": UNSIGNED} if _is_true(told("awsAnonymousCredential")) else {}
    config = Config(
        s3={"addressing_style": style, "use_accelerate_endpoint": _is_true(told("S3_USE_ACCELERATE"))},
        retries={"total_max_attempts": 1},
        connect_timeout=20,
        read_timeout=60,
        **anonymous,
    )
    verify: bool | str | None = None
    if (told("S3_VERIFY_SSL") or "").lower() in ("0", "false"):
        verify = False
    elif told("AWS_CA_BUNDLE"):
        verify = told("AWS_CA_BUNDLE")
        if not Path(str(verify)).is_file():
            raise FetchError(f"AWS_CA_BUNDLE names {verify}, which is not there")
    region = told("AWS_DEFAULT_REGION") or ("us-east-1" if endpoint else None)
    return boto3.client("s3", endpoint_url=endpoint, config=config, verify=verify, region_name=region)


def _entries(client: Any, bucket: str, path: str, uri: str) -> Iterator[Entry]:
    """The object itself if there is one of that key, else all below it; folders that only a key stands for are none."""
    found: list[dict[str, Any]] = []

    def read() -> None:
        found.clear()
        with _saying(uri):
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=path):
                found.extend(page.get("Contents") or ())

    insist(read, uri, lambda: 0)
    for one in found:
        key = str(one["Key"])
        if key == path:
            yield Entry(key, key.rpartition("/")[2], int(one["Size"]), str(one.get("ETag") or ""))
            return
    below = f"{path}/" if path else ""
    for one in found:
        key = str(one["Key"])
        if key.startswith(below) and not key.endswith("/"):
            yield Entry(key, key.removeprefix(below), int(one["Size"]), str(one.get("ETag") or ""))


def _fetch_one(client: Any, bucket: str, entry: Entry, place: Path) -> None:
    if place.exists() and place.stat().st_size == entry.size_bytes:
        return
    # Another version has another name: what is here of an older one is not gone on with.
    part = place.with_name(f"{place.name}.{entry.tag.strip(chr(34))[:40]}{PART}")
    insist(lambda: _go_on(client, bucket, entry, part), f"s3://{bucket}/{entry.key}", lambda: _size(part))
    part.rename(place)


def _go_on(client: Any, bucket: str, entry: Entry, part: Path) -> None:
    """Fetch what is missing of ``part``. Raises Interrupted where it breaks off."""
    have = _size(part)
    if have > entry.size_bytes:
        part.unlink()
        have = 0
    with _saying(f"s3://{bucket}/{entry.key}"), saying_full(part.parent), part.open("ab") as file:
        if have < entry.size_bytes:
            wanted = {"Range": f"bytes={have}-"} if have else {}
            told = {"IfMatch": entry.tag} if entry.tag else {}
            body = client.get_object(Bucket=bucket, Key=entry.key, **wanted, **told)["Body"]
            for chunk in iter(lambda: body.read(_CHUNK_BYTES), b""):
                file.write(chunk)
    if _size(part) != entry.size_bytes:
        raise Interrupted(f"broke off after {_size(part)} of {entry.size_bytes} bytes")


class _saying:
    """Turns what the library raises into what can be tried again and what cannot."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
        from urllib3.exceptions import HTTPError

        if isinstance(error, ClientError):
            told = error.response.get("Error") or {}
            code = str(told.get("Code") or "")
            if code in _PASSING:
                raise Interrupted(f"{code}: {told.get('Message')}") from None
            raise FetchError(f"{self.what}: {code}: {told.get('Message')}") from None
        if isinstance(error, NoCredentialsError):
            raise FetchError(
                f"{self.what}: no credentials: name a Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the "
                "ServiceAccount of the predictor"
            ) from None
        if isinstance(error, BotoCoreError | HTTPError | ConnectionError | TimeoutError):
            raise Interrupted(f"{type(error).__name__}: {error}") from None


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _is_true(text: str | None) -> bool:
    return (text or "").lower() in ("1", "true")
