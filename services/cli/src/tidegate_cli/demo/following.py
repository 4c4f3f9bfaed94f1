"""Keeps the board up to date while the demo goes on, and lets it wait for what should come."""

import asyncio
from collections.abc import Callable

from tidegate.client import Client, ClientError
from tidegate_cli.demo.board import Board


class DemoFailed(Exception):
    """The demo did not go as it should; the text says what was missing."""


class Following:
    """A watch of everything, folded into ``board``; ``tell`` gets a line for each thing that happens."""

    def __init__(self, client: Client, board: Board, clock: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._client, self._board, self._clock, self._tell = client, board, clock, tell
        self._changed = asyncio.Event()
        self._error = ""

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            async for change in self._client.watch():
                for line in self._board.fold(change, self._clock()):
                    self._tell(line)
                self._changed.set()
            self._error = "the watch ended"
        except ClientError as error:
            self._error = str(error)
        self._changed.set()

    async def until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        """Return once ``holds()``; raises DemoFailed when that does not happen within ``seconds``, or cannot any more."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    if self._error:
                        raise DemoFailed(self._error)
                    if self._board.has_failed:
                        raise DemoFailed("; ".join(self._board.failures))
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise DemoFailed(f"within {seconds:g} s this did not happen: {what}") from None
