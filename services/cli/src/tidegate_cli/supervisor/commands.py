"""`tidegate up` and `tidegate down`."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

from tidegate_cli.supervisor import endpoint
from tidegate_cli.supervisor.plan import UpSettings
from tidegate_cli.supervisor.service_settings import ServiceSettingOption
from tidegate_cli.supervisor.supervisor import CannotStart, Supervisor

START_SECONDS = 90.0
STOP_SECONDS = 60.0

_FOLDER = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".tidegate"),
    envvar="TIDEGATE_DATA_DIR",
    show_default=True,
    help="The folder that holds all of the system's state, logs and tokens.",
)


@click.command()
@_FOLDER
@click.option("--detach", "-d", is_flag=True, help="Return once everything is ready; `tidegate down` stops it.")
@click.option("--port", type=int, default=0, help="Port of the API on 127.0.0.1  [default: 7470, or a free one]")
@click.option("--sim-nodes", type=click.IntRange(0, 100_000), default=0, help="Simulated nodes beside this machine.")
@click.option("--sim-cpu", default="32", show_default=True, help="CPUs of a simulated node.")
@click.option("--sim-memory", default="128Gi", show_default=True, help="Memory of a simulated node.")
@click.option("--sim-gpus", type=int, default=0, show_default=True, help="GPUs of a simulated node.")
@click.option("--local-node/--no-local-node", default=True, help="Whether this machine is a node that runs pods.")
@click.option(
    "--inventory",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file that declares this machine's CPUs, NUMA nodes and GPUs.",
)
@click.option("--sync", default="1s", show_default=True, help="What a power cut may cost; `always` for nothing.")
@click.option("--trace", type=click.Choice(["off", "file"]), default="off", help="Write traces to the data folder.")
@click.option("--metrics", is_flag=True, help="Every service serves Prometheus metrics on a port of its own.")
@click.option("--log-level", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]), default="INFO")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Drive the Kubernetes cluster of this file, instead of a cluster of our own on this machine.",
)
@click.option("--context", default="", help="The context of the kubeconfig  [default: its current one]")
@click.option("--scheduler-names", default="", help="Whose pods are scheduled, such as tidegate,volcano.")
@click.option(
    "--webhook-url",
    default="",
    metavar="https://HOST:PORT",
    help="Where the API server of --kubeconfig reaches this machine, to have manifests admitted here.",
)
@click.option(
    "--set",
    "service_settings",
    multiple=True,
    type=ServiceSettingOption(),
    help="A setting of one service, such as gang_scheduler.preemption=false. May be given more than once.",
)
def up(detach: bool, **options: object) -> None:
    """Start the whole system on this machine: the message bus, every service, and this machine as a node.

    \b
    tidegate up                      in the foreground, until Ctrl-C
    tidegate up --detach             in the background
    tidegate up -d --sim-nodes 100   with a hundred simulated nodes beside this machine
    tidegate up --kubeconfig FILE    driving a Kubernetes cluster
    tidegate up --set gang_scheduler.placement=spread
    """
    settings = UpSettings(**options)  # type: ignore[arg-type]
    settings = UpSettings(**{**_fields(settings), "data_dir": settings.data_dir.resolve()})  # type: ignore[arg-type]
    if settings.webhook_url and (settings.local or not settings.webhook_url.startswith("https://")):
        raise click.BadParameter("is https://HOST:PORT, and needs --kubeconfig", param_hint="--webhook-url")
    if endpoint.read(settings.data_dir) is not None:
        raise click.ClickException(f"a system runs in {settings.data_dir} already; `tidegate down` stops it")
    if detach:
        _detach(settings)
        return
    try:
        asyncio.run(Supervisor(settings, lambda text: click.echo(text, err=True)).run(_say_ready))
    except CannotStart as error:
        raise click.ClickException(str(error)) from None


@click.command()
@_FOLDER
def down(data_dir: Path) -> None:
    """Stop the system that runs in the data folder: its services, its pods' processes, and the message bus."""
    data_dir = data_dir.resolve()
    found = endpoint.read(data_dir)
    if found is None:
        click.echo(f"nothing runs in {data_dir}")
        return
    os.kill(found.pid, signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    while endpoint.start_time(found.pid) == found.started:
        if time.monotonic() > until:
            raise click.ClickException(f"process {found.pid} has not ended within {STOP_SECONDS:g} s")
        time.sleep(0.05)
    click.echo("stopped")


def _fields(settings: UpSettings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def _say_ready(server: str) -> None:
    click.echo(f"Tidegate is ready at {server}. In another terminal: tidegate status, tidegate apply -f FILE")


def _detach(settings: UpSettings) -> None:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    log = settings.data_dir / "up.log"
    arguments = [sys.executable, "-m", "tidegate_cli.main", "up"]
    for name, value in _fields(settings).items():
        arguments += _flag(name, value)
    with log.open("ab") as output:
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    until = time.monotonic() + START_SECONDS
    while (found := endpoint.read(settings.data_dir)) is None:
        if process.poll() is not None or time.monotonic() > until:
            tail = log.read_text().strip().splitlines()[-1:]
            raise click.ClickException(f"the system did not start: {' '.join(tail)} (see {log})")
        time.sleep(0.05)
    click.echo(f"Tidegate is ready at {found.server} (process {found.pid}); `tidegate down` stops it")
    click.echo(f"Inference services are asked at {found.requests}")


def _flag(name: str, value: object) -> list[str]:
    if isinstance(value, tuple):
        return [word for setting in value for word in ("--set", str(setting))]
    flag = f"--{name.replace('_', '-')}"
    if value in (None, ""):
        return []
    if name == "local_node":
        return [flag] if value else ["--no-local-node"]
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)]
