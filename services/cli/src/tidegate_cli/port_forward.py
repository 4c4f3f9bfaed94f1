"""The way to a service of a cluster through its API server, kept open by kubectl for as long as a command takes."""

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

HOST = "localhost"
FORWARDING = "Forwarding from 127.0.0.1:"


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl as it was called, for calling it again: ``flags`` say which cluster and who is asking."""

    flags: tuple[str, ...] = ()

    def says(self, *words: str) -> str:
        """What it prints; "" where it fails. Raises ClickException where there is no kubectl."""
        return self._start(*words).communicate(timeout=30)[0]

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(["kubectl", *self.flags, *words], stdout=pipe, stderr=pipe, text=True)
        except FileNotFoundError:
            raise click.ClickException("kubectl is not on the PATH; with --server none is needed") from None

    @contextmanager
    def forwarded(self, namespace: str, service: str, port: int) -> Iterator[tuple[str, Path]]:
        """An address of this machine that leads to ``service``, and a file with the certificate that it shows there.

        The way there is the API server's, who knows the cluster's services: what is at its end needs nobody else to vouch for
        it. Raises ClickException with kubectl's own words.
        """
        target = ["--namespace", namespace, "port-forward", "--address", "127.0.0.1", f"service/{service}", f":{port}"]
        with self._start(*target) as process, TemporaryDirectory() as folder:
            try:
                local = _port(process)
                file = Path(folder) / "server.crt"
                file.write_text(ssl.get_server_certificate((HOST, local)))
                yield f"{HOST}:{local}", file
            finally:
                process.terminate()


def _port(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    if not line.startswith(FORWARDING):
        process.terminate()
        said = process.stderr.read().strip() or "kubectl port-forward has ended"
        raise click.ClickException(
            f"{said}; is Tidegate installed there? --tidegate-namespace says where, --server another way"
        )
    return int(line.removeprefix(FORWARDING).split()[0])
