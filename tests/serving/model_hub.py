"""A hub of models that answers what the client of Hugging Face's hub asks: which files a revision has, and their content."""

import json
import re
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = sha1(b"revision").hexdigest()


@dataclass
class Hub:
    """``repositories`` are files by name, by ``owner/name``; ``tokens`` lets in to those that ask for one."""

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    failing: list[int] = field(default_factory=list)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""


def serve(hub: Hub) -> ThreadingHTTPServer:
    """A server for ``hub``; its caller runs and closes it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    return server


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append((self.command, path, self.headers.get("Range")))
            if hub.failing:
                self._say(hub.failing.pop(0), {"error": "overloaded"})
                return
            listing = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path)
            content = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
            name = listing[1] if listing else content[1] if content else ""
            files = hub.repositories.get(name)
            token = hub.private.get(name)
            if files is None or (token and self.headers.get("Authorization") != f"Bearer {token}"):
                self._say(401, {"error": "Invalid username or password."}, {"X-Error-Code": "RepoNotFound"})
            elif listing:
                self._list(name, files, listing[2], listing[3])
            elif content and content[3] in files:
                self._content(files[content[3]])
            else:
                self._say(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})

        def _list(self, name: str, files: dict[str, bytes], what: str | None, revision: str | None) -> None:
            if revision not in (None, "main", "v1", COMMIT):
                self._say(404, {"error": "Revision not found"}, {"X-Error-Code": "RevisionNotFound"})
            elif what == "tree":
                self._say(200, [
                    {"type": "file", "path": path, "size": len(data), "oid": sha1(data).hexdigest()}
                    for path, data in sorted(files.items())
                ])  # fmt: skip
            else:
                siblings = [{"rfilename": path} for path in sorted(files)]
                self._say(200, {"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings, "private": False,
                                "downloads": 0, "likes": 0, "tags": []})  # fmt: skip

        def _content(self, data: bytes) -> None:
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
            start = int(wanted[1]) if wanted else 0
            self.send_response(206 if wanted else 200)
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("ETag", f'"{sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            if self.command == "GET":
                cut = hub.cuts.pop(0) if hub.cuts and len(data) > 1000 else len(data)
                self.wfile.write(data[start : start + cut])
                self.close_connection = start + cut < len(data)

        def _say(self, code: int, what: Any, headers: dict[str, str] | None = None) -> None:
            body = json.dumps(what).encode()
            self.send_response(code)
            for header, value in (headers or {}).items():
                self.send_header(header, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
