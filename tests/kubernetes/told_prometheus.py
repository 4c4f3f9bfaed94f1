"""A Prometheus that answers what a test says, so that a test can take values away, too."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


class ToldPrometheus:
    """``series`` are the labels and the value of each series, by a word that is in the query. Without any it is down."""

    def __init__(self) -> None:
        self.series: dict[str, list[tuple[dict[str, str], str]]] = {}
        self.queries: list[str] = []
        self.address = ""
        self.is_down = False

    def answer(self, query: str) -> bytes:
        """What it says to an instant query."""
        self.queries.append(query)
        found = next((series for word, series in self.series.items() if word in query), [])
        result = [{"metric": labels, "value": [0, value]} for labels, value in found]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@contextmanager
def told_prometheus() -> Iterator[ToldPrometheus]:
    """One that runs until the end."""
    told = ToldPrometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            content = b"" if told.is_down else told.answer(form["query"][0])
            self.send_response(503 if told.is_down else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
