"""A process that serves the webhooks as admission does, of a cluster of some size; or, as the reference, that only echoes over TLS.

`python -m tests.bench.webhook_server PORT FOLDER [echo|busy]`: the folder holds tls.crt and tls.key; ``busy`` is a cluster in which
``CHANGES`` pods change each second.
"""

import asyncio
import ssl
import sys
from itertools import count
from pathlib import Path

from admission.domain.pod_review import SchedulerRule
from admission.view import View
from admission.webhooks.certificate_keeper import CertificateKeeper, MountedFolder
from admission.webhooks.server import Address, WebhookServer
from bus import MemoryBus
from chassis.garbage import search_in_steps
from kube import Edit, Key, Manifest, from_manifest
from tidegate import subjects
from tidegate.codec.facts import FactSet, encode
from tidegate.codec.garbage import keep_all

NODES = 1_000
QUEUES = 200
CHANGES = 5_000


def profile(name: str, label: str) -> Manifest:
    """A profile that makes batch pods of those that have the label."""
    spec = {
        "selector": {"matchLabels": {label: "yes"}},
        "qosClass": "BE",
        "labels": {"koordinator.sh/priority-class": "koord-batch"},
    }
    return {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": name},
        "spec": spec,
    }


def _node(number: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}"},
        "status": {"allocatable": {"cpu": "32"}},
    }


def _fill(view: View) -> None:
    queues: list[Manifest] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1},
        }
        for name in ("default", *(f"q{number}" for number in range(QUEUES)))
    ]
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    profiles = [profile(f"p{number}", f"work{number}") for number in range(10)]
    for manifest in (namespace, *queues, *profiles, *map(_node, range(NODES))):
        view.store.put(from_manifest(manifest))


async def _change(bus: MemoryBus) -> None:
    """Pods that come in sets of a hundred, for ever; what it takes to write them is spent in this process too."""
    log, size, body = bus.log(subjects.FACTS), 100, {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
    for number in count():
        edits = tuple(
            Edit(Key("Pod", "default", f"p{index}"), f"u{index}", {"labels": {"n": str(number)}}, body, {}, fresh=True)
            for index in range(size)
        )
        await log.append(encode(FactSet(0, edits)), expected=number, message_id=f"m{number}")
        await asyncio.sleep(size / CHANGES)


async def _serve(port: int, folder: Path, busy: bool) -> None:
    keeper, bus = CertificateKeeper(MountedFolder(folder)), MemoryBus()
    view = View(bus)
    following = [asyncio.create_task(view.run())]
    await view.ready.wait()
    _fill(view)
    following += [asyncio.create_task(_change(bus))] if busy else []
    rule = SchedulerRule("tidegate", {}, {})
    server = WebhookServer(view, keeper, Address("127.0.0.1", port), rule)
    keep_all()
    await asyncio.gather(keeper.run(), server.run(), *following)


async def _echo(port: int, folder: Path) -> None:
    """Answers each HTTP request with its own body, and looks no further at it than for its length."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length + body
            )

    async def until_gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    server = await asyncio.start_server(until_gone, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    search_in_steps()
    place, mode = (int(sys.argv[1]), Path(sys.argv[2])), sys.argv[3:]
    asyncio.run(_echo(*place) if mode == ["echo"] else _serve(*place, busy=mode == ["busy"]))
