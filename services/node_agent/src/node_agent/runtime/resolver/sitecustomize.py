"""Names of the pod's peers for Python programs on a machine where a pod cannot have a hosts file of its own.

Found by way of PYTHONPATH; reads the file that TIDEGATE_HOSTS names anew whenever it changed.
"""

from __future__ import annotations

import os
import socket
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:  # the import itself would slow down every start of a Python program
    from typing import Any


class _Hosts:
    """The names in a hosts file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.changed = 0
        self.names: dict[str, str] = {}

    def address(self, host: Any) -> Any:
        """The address of ``host`` if the file names it, else ``host`` itself."""
        name = host.decode() if isinstance(host, bytes) else host
        try:
            changed = os.stat(self.file).st_mtime_ns  # noqa: PTH116
            if changed != self.changed:
                self.names, self.changed = self._read(), changed
        except OSError:
            return host
        return self.names.get(name.lower(), host) if isinstance(name, str) else host

    def _read(self) -> dict[str, str]:
        names: dict[str, str] = {}
        with open(self.file) as lines:  # noqa: PTH123
            for address, *known in (line.split() for line in lines if line.strip()):
                for name in known:
                    names.setdefault(name.lower(), address)
        return names


def _install(hosts: _Hosts) -> None:
    ask, ask_one = socket.getaddrinfo, socket.gethostbyname

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        return ask(hosts.address(host), *args, **kwargs)

    def gethostbyname(host: Any) -> Any:
        return ask_one(hosts.address(host))

    socket.getaddrinfo, socket.gethostbyname = getaddrinfo, gethostbyname


def _run_next() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if os.path.abspath(path) != here])  # noqa: PTH100
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if os.environ.get("TIDEGATE_HOSTS"):
    _install(_Hosts(os.environ["TIDEGATE_HOSTS"]))
_run_next()
