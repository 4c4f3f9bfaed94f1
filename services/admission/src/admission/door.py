"""Who is let in: the users of the data folder, whom the cluster knows, or both."""

from admission.callers import Caller, Callers, Denied
from admission.users import Users

_HOW = (
    "the token is missing or unknown; `tidegate` reads it from the data folder, or pass --token; programs send it as "
    "`authorization: Bearer TOKEN`"
)


class Door:
    """Asks ``users`` first, who are told by their tokens alone, then the ``cluster``; either may be missing."""

    def __init__(self, users: Users | None, cluster: Callers | None = None) -> None:
        self._users, self._cluster = users, cluster

    async def caller(self, header: str) -> Caller:
        """Who sends an ``authorization`` header (``Bearer TOKEN``). Raises Denied."""
        token = header.removeprefix("Bearer ").strip()
        found = self._users.find(token) if self._users is not None else None
        if found is not None:
            return found
        if not token or self._cluster is None:
            raise Denied(_HOW)
        return await self._cluster.caller(token)
