"""Serves a recorded watch over HTTP again, as fast as it is asked to, over and over with other names.

`python watch_server.py RECORDING ROUNDS CHANGES_PER_SECOND`: prints its port, then serves; `GET /sent` tells how many changes were
handed to the connection. With 0 changes a second it sends as fast as the other side reads.
"""

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import orjson

BATCH = 50
VERSION = 10_000_000
LAST = "the-last"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def rounds(recording: Path, count: int) -> tuple[dict[str, object], list[list[bytes]]]:
    """The list as it was, emptied, and the lines of each round: other names, uids and later versions than in those before.

    The last of all is a pod with the name LAST, which goes no more.
    """
    with gzip.open(recording) as file:
        listed, *lines = [orjson.loads(line) for line in file]
    first = int(listed["metadata"]["resourceVersion"])
    listed["items"], listed["metadata"]["resourceVersion"] = [], str(VERSION)
    made = []
    for number in range(count):
        shifted = []
        for line in lines:
            metadata = line["object"]["metadata"]
            version = VERSION + number * 100_000 + int(metadata["resourceVersion"]) - first
            changed = {**metadata, "resourceVersion": str(version)}
            if "name" in metadata:
                changed |= {"name": f"r{number}-{metadata['name']}", "uid": f"{number:08d}{metadata['uid'][8:]}"}
            shifted.append(orjson.dumps({**line, "object": {**line["object"], "metadata": changed}}) + b"\n")
        made.append(shifted)
    first_line = next(line for line in lines if line["type"] == "ADDED")
    metadata = {**first_line["object"]["metadata"], "name": LAST, "uid": LAST, "resourceVersion": str(2 * VERSION)}
    made[-1].append(orjson.dumps({**first_line, "object": {**first_line["object"], "metadata": metadata}}) + b"\n")
    return listed, made


class WatchServer:
    """An API server that has pods and nothing else."""

    def __init__(self, recording: Path, count: int, pace: int) -> None:
        self.listed, self.rounds = rounds(recording, count)
        self.pace, self.sent = pace, 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                path = line.split(b" ")[1]
                while (await reader.readline()).strip():
                    pass
                if b"watch=" in path:
                    await self._watch(writer)
                else:
                    body = orjson.dumps(self._body(path))
                    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _body(self, path: bytes) -> object:
        if path.startswith(b"/api/v1/pods"):
            return self.listed
        if path.startswith(b"/api/v1"):
            return {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list", "watch"]}]}
        return {"sent": self.sent} if path == b"/sent" else {"groups": []}

    async def _watch(self, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        began = asyncio.get_running_loop().time()
        async for part in self._parts(began):
            data = b"".join(part)
            writer.write(b"%x\r\n" % len(data) + data + b"\r\n")
            await writer.drain()
            self.sent += len(part)
        await asyncio.Event().wait()

    async def _parts(self, began: float) -> AsyncIterator[list[bytes]]:
        clock = asyncio.get_running_loop().time
        for lines in self.rounds:
            for at in range(0, len(lines), BATCH):
                if self.pace and (ahead := self.sent / self.pace - (clock() - began)) > 0:
                    await asyncio.sleep(ahead)
                yield lines[at : at + BATCH]


async def main() -> None:
    recording, count, pace = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    server = await asyncio.start_server(WatchServer(recording, count, pace).handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
