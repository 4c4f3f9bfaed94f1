"""Serving HTTP on a socket in the file system, for the proxy alone."""

import asyncio

from aiohttp import web


async def serve(application: web.Application, socket: str) -> None:
    """Listen on ``socket``, for ever; a predecessor's is replaced. Who hangs up is not answered any more."""
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.0, access_log=None)
    await runner.setup()
    await web.UnixSite(runner, socket, backlog=4096).start()
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
