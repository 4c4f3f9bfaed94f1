"""Where requests for inference services are taken: for users at a port of the machine, for pods at an address of its own as well."""

import json
import socket
from pathlib import Path
from typing import NamedTuple

from bus.server import free_port
from tidegate_cli.supervisor import endpoint
from tidegate_cli.supervisor.service_settings import ServiceSetting

USUAL_PORT = 7480
INNER_PORT = 80
"""The port of a Service."""
_INNER_HOSTS = tuple(f"127.0.0.{last}" for last in range(80, 96))
"""One for each system of this machine. Of several addresses of a name, those nearest to 127.0.0.1 are tried first."""
_HOST, _PORT = ("inference_gateway", "gateway_host"), ("inference_gateway", "gateway_port")
_ALL = ("", "0.0.0.0", "::")


class RequestPath(NamedTuple):
    """``inner`` is the address at whose port 80 pods ask, "" where that port is not ours to open."""

    host: str
    port: int
    inner: str = ""

    @property
    def address(self) -> str:
        """Where somebody on this machine asks."""
        return f"{'127.0.0.1' if self.host in _ALL else self.host}:{self.port}"


def request_path(data_dir: Path, settings: tuple[ServiceSetting, ...], *, inner: bool) -> RequestPath:
    """As the settings of the service say, else the usual port, or a free one; with ``inner`` one for pods, too.

    Where a proxy of a system on the same folder was left behind it is taken over, so its places are free. Raises ValueError
    where the port that was asked for is taken.
    """
    said, own = {(one.service, one.name): one.value for one in settings}, _left_behind(data_dir)
    host, port = said.get(_HOST, "127.0.0.1"), said.get(_PORT, "")

    def may_be(port: int, host: str) -> bool:
        return (host, port) in own or is_free(port, host)

    if port.isdigit() and not may_be(int(port), host):
        raise ValueError(f"port {port} is taken; choose another with --set inference_gateway.gateway_port")
    chosen = int(port) if port.isdigit() else USUAL_PORT if may_be(USUAL_PORT, host) else free_port()
    hosts = sorted(_INNER_HOSTS, key=lambda one: (one, INNER_PORT) not in own)
    return RequestPath(host, chosen, next((one for one in hosts if inner and may_be(INNER_PORT, one)), ""))


def _left_behind(data_dir: Path) -> set[tuple[str, int]]:
    """Where a proxy listens whose service and supervisor were killed together."""
    folder = data_dir / "inference_gateway"
    try:
        note = json.loads((folder / "proxy.json").read_text())
        if endpoint.start_time(note["pid"]) != note["began"]:
            return set()
        (listener, *_) = json.loads((folder / "bootstrap.json").read_text())["static_resources"]["listeners"]
        listed = [listener["address"], *(one["address"] for one in listener.get("additional_addresses", ()))]
        return {(one["socket_address"]["address"], one["socket_address"]["port_value"]) for one in listed}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether this process may listen there, and nobody does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
