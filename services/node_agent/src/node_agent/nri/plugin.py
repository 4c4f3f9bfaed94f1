"""The plug-in: a runtime asks it before it makes or changes a container, and it says what is decided about that.

Kinds and fields are those of NRI's ``pkg/api/api.proto`` (v1alpha1). Without an answer in time a runtime goes on as if nobody had
been asked, and what is decided is written a moment later, as where there is no NRI.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from node_agent.domain.colocation.groups import CPU_MAX, CPU_SET, CPU_SHARES, MEMORY_MAX, UNLIMITED
from node_agent.nri import wire
from node_agent.nri.link import Link, Refused, Unimplemented

_log = logging.getLogger(__name__)

NAME, INDEX = "tidegate", "50"
RUNTIME = "nri.pkg.api.v1alpha1.Runtime"
CREATE_CONTAINER, UPDATE_CONTAINER = 4, 8
AGAIN_SECONDS = 10.0

Files = Mapping[str, str]
Decided = Callable[[str, str], Awaitable[Files]]
"""What is decided about a container, by the uid of its pod and its name; nothing where nothing is."""


async def serve(socket: Path, decided: Decided, again_seconds: float = AGAIN_SECONDS) -> None:
    """Be the runtime's plug-in, for ever; where it is not there, or goes away, try again now and then."""
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(socket)
        except OSError as error:
            _log.debug("nri_not_there", extra={"socket": str(socket), "error": str(error)})
        else:
            await _serve_once(Link(reader, writer, Plugin(decided).answer))
        await asyncio.sleep(again_seconds)


async def _serve_once(link: Link) -> None:
    reading = asyncio.create_task(link.run())
    try:
        await link.call(RUNTIME, "RegisterPlugin", wire.text(1, NAME) + wire.text(2, INDEX))
        _log.info("nri_registered")
        await reading
    except (OSError, ValueError, Refused, TimeoutError) as error:
        _log.warning("nri_ended", extra={"error": repr(error)})
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class Plugin:
    """Answers what a runtime asks."""

    def __init__(self, decided: Decided) -> None:
        self._decided = decided

    async def answer(self, method: str, content: bytes) -> bytes:
        """The answer to one request; raises Unimplemented."""
        asked = wire.fields(content)
        match method:
            case "Configure":
                return wire.number(2, 1 << CREATE_CONTAINER - 1 | 1 << UPDATE_CONTAINER - 1)
            case "Synchronize":  # what runs already is looked after by the rounds; of more to come all is wanted
                return wire.number(2, wire.whole(asked, 3)) if wire.whole(asked, 3) else b""
            case "CreateContainer":
                found = resources(await self._files(asked))
                return wire.message(1, wire.message(6, wire.message(2, found))) if found else b""
            case "UpdateContainer":
                return await self._updated(asked)
            case "Shutdown" | "StateChange":
                return b""
        raise Unimplemented(method)

    async def _files(self, asked: wire.Fields) -> Files:
        pod, container = wire.fields(wire.inner(asked, 1)), wire.fields(wire.inner(asked, 2))
        return await self._decided(wire.word(pod, 3), wire.word(container, 3))

    async def _updated(self, asked: wire.Fields) -> bytes:
        """A kubelet changes a container: what is decided stays. Without the container's id it would be nobody's change."""
        found = resources(await self._files(asked))
        if not found:
            return b""
        container = wire.fields(wire.inner(asked, 2))
        update = wire.text(1, wire.word(container, 1)) + wire.message(2, wire.message(1, found)) + wire.number(3, 1)
        return wire.message(1, update)


def resources(files: Files) -> bytes:
    """What the files say, as LinuxResources; nothing where they say nothing of these."""
    cpu = memory = b""
    if CPU_SHARES in files:
        cpu += wire.message(1, wire.number(1, int(files[CPU_SHARES])))
    if CPU_MAX in files:
        quota, period = files[CPU_MAX].split()
        cpu += wire.message(2, wire.number(1, -1 if quota == UNLIMITED else int(quota)))
        cpu += wire.message(3, wire.number(1, int(period)))
    if CPU_SET in files:
        cpu += wire.text(6, files[CPU_SET])
    if MEMORY_MAX in files:
        limit = files[MEMORY_MAX]
        memory += wire.message(1, wire.number(1, -1 if limit == UNLIMITED else int(limit)))
    return (wire.message(1, memory) if memory else b"") + (wire.message(2, cpu) if cpu else b"")
