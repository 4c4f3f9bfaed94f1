"""Wiring: settings → the proxy, its conductor, the activator, the reporter → process."""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

from chassis.fact_follower import FactFollower
from chassis.process import Context, Parts, run
from inference_gateway.adapters.activator import Activator
from inference_gateway.adapters.conductor import Conductor
from inference_gateway.adapters.endpoint_stream import EndpointStream
from inference_gateway.adapters.proxy_admin import ProxyAdmin, ProxyAway
from inference_gateway.adapters.proxy_process import ProxyProcess
from inference_gateway.adapters.reporter import Reporter
from inference_gateway.adapters.settings_server import SettingsServer
from inference_gateway.domain.envoy.bootstrap import bootstrap
from inference_gateway.domain.envoy.layout import ACTIVATOR, DIRECTORY, SETTINGS, Layout
from inference_gateway.domain.holding import Bounds, Waiting
from inference_gateway.domain.readings import source_of
from inference_gateway.domain.serving.directory import Directory, concerns
from inference_gateway.settings import Settings

SERVICE = "inference_gateway"
LONGEST_FOLDER_BYTES = 90
"""So that the path of a socket in there has no more than 107."""
INNER_PORT = 80
"""The port of a Service."""
END_SECONDS = 3.0
"""How long a proxy that has nothing to do takes to end, at most."""
SLACK_SECONDS = 60
"""How much longer the proxy waits for the activator than a request may wait."""


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    folder = (settings.data_dir / SERVICE).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    layout = Layout(str(_socket_folder(folder)))
    places = [(settings.gateway_host, settings.gateway_port)]
    if settings.inner_host:
        places.append((settings.inner_host, INNER_PORT))
    started = bootstrap(places, settings.hold_seconds + SLACK_SECONDS, layout)
    proxy, admin = ProxyProcess(folder, started, settings.workers), ProxyAdmin(layout)
    directory = Directory(settings.domain)
    endpoints, told = EndpointStream(), SettingsServer()
    conductor = Conductor(directory, layout, told, endpoints)
    waiting = Waiting(Bounds(settings.hold_requests, settings.hold_requests_total, settings.hold_seconds))
    activator = Activator(directory, conductor, waiting)
    reporter = Reporter(context.bus, context.clock, directory, activator, admin, source_of(settings.holder))
    follower = FactFollower(SERVICE, context.bus, concerns)

    async def follow() -> None:
        directory.fold(await follower.begin())
        if follower.has_caught_up:
            conductor.change()
        async for entries in follower.read():
            folded = [await follower.take(entry) for entry in entries]
            changed = [directory.fold(one.events) for one in folded if one is not None]
            if follower.has_caught_up and (any(changed) or not conductor.ready.is_set()):
                conductor.change()
            context.measures.revision.set(follower.fold.revision)

    async def stop() -> None:
        try:
            await admin.drain(settings.drain_seconds)
        except ProxyAway:
            pass
        await proxy.stop(END_SECONDS)
        await admin.close()

    watch = context.measures.watch
    watch("held_requests", "Requests that wait for a replica.", lambda: waiting.total)
    watch("handed_on_requests", "Requests that waited and went on.", lambda: activator.handed_on)
    watch("refused_requests", "Requests that were told why there is no answer.", lambda: activator.refused)
    watch("proxy_starts", "How often the proxy was started.", lambda: proxy.starts)
    watch("routable_pools", "Components and revisions that requests are sent to.", lambda: len(conductor.routable))
    tasks = {
        "facts": follow(),
        "conductor": conductor.run(),
        "proxy": proxy.run(),
        "settings": told.serve(layout.socket(SETTINGS)),
        "endpoints": endpoints.serve(layout.socket(DIRECTORY)),
        "activator": activator.serve(layout.socket(ACTIVATOR)),
        "reporter": reporter.run(),
    }
    return Parts(tasks=tasks, ready=(conductor.ready,), stopping=(stop,))


def _socket_folder(folder: Path) -> Path:
    """Where sockets may be: in ``folder``, unless its name is too long for that."""
    if len(os.fsencode(folder)) <= LONGEST_FOLDER_BYTES:
        return folder
    short = Path(tempfile.gettempdir()) / f"tidegate-{sha256(os.fsencode(folder)).hexdigest()[:16]}"
    short.mkdir(mode=0o700, exist_ok=True)
    if short.stat().st_uid != os.getuid():
        raise SystemExit(f"{short} is another user's; choose a data folder with a shorter name")
    return short


def main() -> None:
    """Run the service until it is told to stop."""
    run(SERVICE, Settings, build)


if __name__ == "__main__":
    main()
