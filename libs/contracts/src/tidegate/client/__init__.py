"""A typed client of Tidegate's API, for programs.

>>> from tidegate.client import Endpoint, SyncClient, find_endpoint
>>> with SyncClient(find_endpoint()) as client:                              # doctest: +SKIP
...     client.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}])
...     for pod in client.list("pods", label_selector="app=web"):
...         print(pod["metadata"]["name"])

``Client`` has the same methods for asyncio. Whatever goes wrong is a ``ClientError`` whose text is for people.
"""

from typing import TYPE_CHECKING, Any

from tidegate.client.endpoint import Endpoint, NoServer, find_endpoint
from tidegate.client.errors import (
    ClientError,
    Conflict,
    Denied,
    Expired,
    NotFound,
    Refused,
    TimedOut,
    Unavailable,
)
from tidegate.client.results import (
    Applied,
    Change,
    Explanation,
    FieldProblem,
    Happening,
    Page,
    ServiceState,
    SystemStatus,
    User,
    accepted,
)

if TYPE_CHECKING:
    from tidegate.client.client import Client
    from tidegate.client.sync_client import SyncClient

__all__ = [
    "Applied",
    "Change",
    "Client",
    "ClientError",
    "Conflict",
    "Denied",
    "Endpoint",
    "Expired",
    "Explanation",
    "FieldProblem",
    "Happening",
    "NoServer",
    "NotFound",
    "Page",
    "Refused",
    "ServiceState",
    "SyncClient",
    "SystemStatus",
    "TimedOut",
    "Unavailable",
    "User",
    "accepted",
    "find_endpoint",
]


def __getattr__(name: str) -> Any:
    """The clients load gRPC, which takes longer than all the rest: only when they are asked for."""
    if name == "Client":
        from tidegate.client.client import Client

        return Client
    if name == "SyncClient":
        from tidegate.client.sync_client import SyncClient

        return SyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
