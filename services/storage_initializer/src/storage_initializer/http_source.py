"""``http://`` and ``https://``: one file, or one archive, that is gone on with where it broke off."""

import http.client
import json
import os
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from urllib.parse import unquote, urlsplit

from storage_initializer.failures import FetchError, Interrupted
from storage_initializer.retries import insist
from storage_initializer.room import check_room, saying_full
from storage_initializer.staging import PART, Staging

TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 20
_PASSING = {408, 425, 429, 500, 502, 503, 504}


def fetch(uri: str, staging: Staging) -> None:
    """Fetch the file that ``uri`` names. Raises FetchError."""
    name = unquote(urlsplit(uri).path).rpartition("/")[2]
    if not name:
        raise FetchError(f"{uri} names no file: its path ends with /")
    place = staging.file(name)
    if place.exists():
        return
    part = place.with_name(place.name + PART)
    headers = _headers(uri)
    insist(lambda: _go_on(uri, headers, part), uri, lambda: _size(part))
    part.rename(place)


def _go_on(uri: str, headers: dict[str, str], part: Path) -> None:
    """Fetch what is missing of ``part``. Raises Interrupted where it breaks off."""
    mark = part.with_name(f"{part.name.removesuffix(PART)}.tag{PART}")
    have, tag = _size(part), mark.read_text() if mark.exists() else ""
    if have and tag:
        headers = headers | {"Range": f"bytes={have}-", "If-Range": tag}
    try:
        with urllib.request.urlopen(urllib.request.Request(uri, headers=headers), timeout=TIMEOUT_SECONDS) as answer:
            goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT and _starts_at(answer.headers, have)
            length = answer.headers.get("Content-Length")
            check_room(part.parent, int(length or 0))
            mark.write_text(_tag(answer.headers))
            with saying_full(part.parent), part.open("ab" if goes_on else "wb") as file:
                for chunk in iter(lambda: answer.read1(_CHUNK_BYTES), b""):  # as it comes: who is killed keeps it
                    file.write(chunk)
                    file.flush()
            came = _size(part) - (have if goes_on else 0)
            if length is not None and came != int(length):
                raise Interrupted(f"broke off after {came} of {length} bytes")
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            part.unlink()
            raise Interrupted("the server has less than is here; it is fetched anew") from None
        if error.code in _PASSING:
            raise Interrupted(f"HTTP {error.code} {error.reason}") from None
        raise FetchError(f"{uri}: HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise Interrupted(str(error.reason)) from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise Interrupted(f"{type(error).__name__}: {error}") from None
    mark.unlink(missing_ok=True)


def _headers(uri: str) -> dict[str, str]:
    """What a request is sent with, by a Secret for this host: ``headers`` (JSON) with its ``https-host``."""
    host = urlsplit(uri).hostname or ""
    given = os.environ.get(f"{host}-headers") or ""
    if not given and os.environ.get("HTTPS_HOST", "").strip() in (host, urlsplit(uri).netloc):
        given = os.environ.get("HTTPS_HEADERS", "")
    try:
        return {str(name): str(value) for name, value in json.loads(given or "{}").items()}
    except (ValueError, AttributeError):
        raise FetchError(f"the headers for {host} are no JSON object of names and values") from None


def _starts_at(headers: Message, have: int) -> bool:
    return str(headers.get("Content-Range") or "").startswith(f"bytes {have}-")


def _tag(headers: Message) -> str:
    """What the server calls this version of the file, if it has a name for it that can be relied on."""
    tag = str(headers.get("ETag") or "")
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified") or "")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
