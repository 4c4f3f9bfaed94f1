"""Each service starts from its image without root and without a place to write, says how it is, and ends when told to."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import images
import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from tidegate.services import SERVICES

if TYPE_CHECKING:
    from docker.models.containers import Container

pytestmark = pytest.mark.timeout(1800)
READY_SECONDS = 90.0
STOP_SECONDS = 10


@pytest.fixture(scope="module")
def started(built: dict[str, str]) -> "Iterator[dict[str, Container]]":
    """All services beside a bus, none of them root, each on a file system that is read-only but for its data folder."""
    with Network() as network:
        bus = DockerContainer(built["nats"]).with_network(network).with_network_aliases("nats")
        bus.with_tmpfs_mount("/data", "uid=65532").with_kwargs(read_only=True, cap_drop=["ALL"])
        services = {service: _service(built[service], network) for service in SERVICES}
        everything = [bus, *services.values()]
        try:
            for container in everything:
                container.start()
            yield {service: container.get_wrapped_container() for service, container in services.items()}
        finally:
            for container in everything:
                container.stop()


def _service(image: str, network: Network) -> DockerContainer:
    return (
        DockerContainer(image)
        .with_network(network)
        .with_env("TIDEGATE_NATS_URL", "nats://nats:4222")
        .with_tmpfs_mount("/tmp")
        .with_tmpfs_mount("/var/lib/tidegate", "uid=65532")
        .with_kwargs(read_only=True, cap_drop=["ALL"], security_opt=["no-new-privileges:true"])
    )


def _health(container: "Container") -> str:
    container.reload()
    return str(container.attrs["State"]["Health"]["Status"])


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_healthy_without_root_on_a_read_only_file_system(
    started: "dict[str, Container]", service: str
) -> None:
    container = started[service]
    until = time.monotonic() + READY_SECONDS
    while _health(container) != "healthy":
        assert container.status == "running" and time.monotonic() < until, container.logs(tail=5).decode()
        time.sleep(0.2)
    assert container.exec_run(["id", "-u"]).output.split() == [b"65532"]
    assert container.exec_run(["touch", "/opt/tidegate/code/new"]).exit_code != 0
    assert container.exec_run(["touch", "/var/lib/tidegate/new"]).exit_code == 0


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_serves_its_metrics_to_others(started: "dict[str, Container]", service: str) -> None:
    """The API and the metrics are asked for from other containers, so they must not be on the loopback interface only."""
    container = started[service]
    read = "import urllib.request as r, socket as s; print(r.urlopen(f'http://{s.gethostname()}:9464').read().decode())"
    answered = container.exec_run(["python3", "-c", read])
    assert answered.exit_code == 0, answered.output.decode()
    assert f"tidegate_{service}_facts_total" in answered.output.decode()
    assert "process_resident_memory_bytes" in answered.output.decode()


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_ends_well_when_it_is_told_to(started: "dict[str, Container]", service: str) -> None:
    container = started[service]
    container.stop(timeout=STOP_SECONDS)
    assert container.wait()["StatusCode"] == 0, container.logs(tail=5).decode()
    said = [json.loads(line) for line in container.logs().decode().splitlines()]
    assert said[-1]["event"] == "stopped"
    assert [line for line in said if line["level"] in ("error", "critical")] == []


def test_the_same_input_gives_layers_of_the_same_bytes(built: dict[str, str], base: str) -> None:
    """Also an hour later, on another machine: nothing of an image but its date may tell when it was built.

    The time of its files is spelled in another way, so that nothing of the first build is taken for the second.
    """
    flags = ("--build-arg", "SOURCE_DATE_EPOCH=00")
    again = images.build("job_controller", base, *flags, tag="tidegate/built-again:test")
    try:
        assert images.layers(again) == images.layers(built["job_controller"])
    finally:
        images.docker("rmi", again)


def test_an_image_holds_only_what_its_service_needs(built: dict[str, str]) -> None:
    """The numbers of a scheduler are not in the image of one that has nothing to compute, nor are tools of developers."""
    listed = images.docker(
        "run", "--rm", "--entrypoint", "ls", built["job_controller"], "/opt/tidegate/packages"
    ).split()
    assert {"grpc", "nats", "orjson"} <= set(listed)
    assert not {"numpy", "numba", "kubernetes", "pytest", "mypy", "ruff", "pip"} & set(listed)


def test_the_program_that_fetches_models_is_an_image_with_the_clients_of_its_stores(base: str) -> None:
    """It runs as KServe starts its own: sources and folders as arguments."""
    made = images.build("storage_initializer", base)
    assert images.health_check(made) is None
    said = images.docker("run", "--rm", "--read-only", "--tmpfs", "/mnt/models", made, "/etc/hostname", "/mnt/models")
    assert "/etc/hostname is in /mnt/models" in said
    images.docker("run", "--rm", "--entrypoint", "python3", made, "-c", "import boto3, huggingface_hub")


@pytest.mark.parametrize(
    ("program", "argument"), [("model_agent", "--enable-batcher"), ("graph_router", "--graph-json")]
)
def test_programs_in_pods_of_models_and_graphs_are_images_that_start(base: str, program: str, argument: str) -> None:
    """Without root and without a place to write; what they import is there. Nobody is asked for a health that it does not tell."""
    made = images.build(program, base)
    assert images.health_check(made) is None
    assert argument in images.docker("run", "--rm", "--read-only", "--cap-drop", "ALL", made, "--help")
