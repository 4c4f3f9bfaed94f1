"""The life of a service's process: connect, start its parts, say when it is ready, stop in order."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client import ProcessCollector, start_http_server

from bus.jetstream import JetStreamBus
from bus.login import NoCredentials
from chassis import logs
from chassis.allocator import keep_freed_memory
from chassis.clock import Clock, SteadyClock
from chassis.endings import end
from chassis.garbage import search_in_steps, search_when_quiet
from chassis.measures import Measures
from chassis.role import Workplace
from chassis.rpc_server import Add, RpcServer
from chassis.settings import ServiceSettings, SettingsError, read, shown
from chassis.tracing import Tracer, make_tracer
from tidegate.codec.garbage import keep_all

log = logging.getLogger(__name__)
S = TypeVar("S", bound=ServiceSettings)
R = TypeVar("R")


@dataclass(slots=True)
class Parts:
    """What a service is made of: endless tasks by name, events that are set when each part is ready, gRPC services.

    ``stopping`` is called, in order, before the tasks are cancelled.
    """

    tasks: dict[str, Coroutine[object, object, None]] = field(default_factory=dict)
    ready: Sequence[asyncio.Event] = ()
    rpc: Sequence[Add] = ()
    rpc_names: Sequence[str] = ()
    stopping: Sequence[Callable[[], Awaitable[None]]] = ()


@dataclass(slots=True)
class Context:
    """What a service is given to make its parts from."""

    bus: JetStreamBus
    clock: Clock
    measures: Measures
    tracer: Tracer

    def workplace(self, holder: str) -> Workplace:
        """The same for a deciding service that goes by the name ``holder``."""
        return Workplace(self.bus, self.clock, self.measures, self.tracer, holder)


def run(service: str, settings_class: type[S], build: Callable[[S, Context], Awaitable[Parts]]) -> None:
    """The main program of a service: read the settings, run until a signal or a failed part; exits the process."""
    try:
        settings = read(settings_class, sys.argv[1:], os.environ)
    except SettingsError as error:
        raise SystemExit(f"{service}: {error}") from None
    search_in_steps()
    keep_freed_memory()
    logs.configure(service, settings.log_level)
    log.info("settings", extra={"settings": shown(settings)})
    try:
        asyncio.run(_serve(service, settings, build))
    except _Stopped:
        log.info("stopped")
    except _Failed as failed:
        raise SystemExit(str(failed)) from None


class _Stopped(Exception):
    """A signal asked the process to stop."""


class _Failed(Exception):
    """A part said that the process cannot go on; the text says why."""


async def _serve(service: str, settings: S, build: Callable[[S, Context], Awaitable[Parts]]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    measures = Measures(service)
    tracer = make_tracer(service, settings.trace, settings.data_dir)
    bus = await _unless(stop, _connect(service, settings))
    parts = await build(settings, Context(bus, SteadyClock(settings.clock_base_ms), measures, tracer))
    address = f"{settings.listen_host}:{settings.health_port}"
    server = RpcServer(address, measures, parts.rpc_names, parts.rpc)
    await server.start()
    if settings.metrics_port:
        ProcessCollector(registry=measures.registry)
        start_http_server(settings.metrics_port, settings.listen_host, measures.registry)
    log.info("started", extra={"pid": os.getpid(), "port": server.port})
    try:
        watches = {
            "readiness": _watch_readiness(parts.ready, bus, server),
            "connection": _watch_connection(bus, server),
        }
        await _work(stop, parts, watches)
    finally:
        await server.stop()
        await bus.close()
        tracer.close()


async def _connect(service: str, settings: ServiceSettings) -> JetStreamBus:
    try:
        return await JetStreamBus.connect(
            settings.nats_url,
            service,
            token=settings.nats_token or None,
            credentials=settings.nats_credentials,
            authority=settings.nats_authority,
            replicas=settings.nats_replicas,
        )
    except NoCredentials as error:
        raise _Failed(f"nats_credentials: {error}") from None


async def _unless(stop: asyncio.Event, work: Coroutine[object, object, R]) -> R:
    """What ``work`` returns, if the process is not told to stop before."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise _Stopped
    finally:
        await end(working, stopping)


async def _work(stop: asyncio.Event, parts: Parts, watches: Mapping[str, Coroutine[object, object, None]]) -> None:
    """Run every part until one of them fails, or the process is told to stop; then end them all."""
    endless = {**parts.tasks, **watches, "garbage": search_when_quiet()}
    tasks = [asyncio.create_task(_endless(name, work), name=name) for name, work in endless.items()]
    stopping = asyncio.create_task(_until(stop, parts), name="signals")
    try:
        done, _ = await asyncio.wait({*tasks, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(*tasks, stopping)
    for task in done:
        task.result()


async def _endless(name: str, work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except SystemExit as end_of_all:  # asyncio would let it through at once, past everything that is still to be ended
        raise _Failed(str(end_of_all)) from end_of_all
    raise RuntimeError(f"{name} ended though it should go on for ever")


async def _until(stop: asyncio.Event, parts: Parts) -> None:
    await stop.wait()
    for stopping in parts.stopping:
        await stopping()
    raise _Stopped


async def _watch_readiness(ready: Sequence[asyncio.Event], bus: JetStreamBus, server: RpcServer) -> None:
    """Ready while every part is and the bus is connected."""
    shown = False
    for event in ready:
        await event.wait()
    keep_all()
    while True:
        now = bus.ping().connected and all(event.is_set() for event in ready)
        if now != shown:
            await server.set_ready(now)
            log.info("ready" if now else "not_ready")
            shown = now
        await asyncio.sleep(1.0)


async def _watch_connection(bus: JetStreamBus, server: RpcServer) -> None:
    """Who is connected to the bus can take over, whoever leads."""
    while True:
        await server.set_standby(bus.ping().connected)
        await asyncio.sleep(1.0)
