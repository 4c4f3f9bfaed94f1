"""What each service is told when the system is started on one machine."""

import json
import os
import socket
from pathlib import Path

import click
import pytest

from bus.server import free_port
from tidegate_cli.supervisor import endpoint
from tidegate_cli.supervisor.plan import Ports, UpSettings, service_program
from tidegate_cli.supervisor.request_path import RequestPath, request_path
from tidegate_cli.supervisor.service_settings import ServiceSetting, ServiceSettingOption


def flags(name: str, requests: RequestPath | None = None, **asked: object) -> dict[str, str]:
    settings = UpSettings(data_dir=Path("data"), **asked)
    words = service_program(name, settings, 4222, "secret", Ports(1, 2, requests)).command[3:]
    return {flag.removeprefix("--"): value for flag, value in zip(words[::2], words[1::2], strict=True)}


@pytest.mark.parametrize(
    ("asked", "heeded"),
    [({}, False), ({"sim_nodes": 10}, True), ({"local_node": False, "sim_nodes": 10}, True)],
)
def test_how_busy_nodes_are_matters_where_there_is_more_than_one(asked: dict[str, object], heeded: bool) -> None:
    assert ("load-aware" not in flags("gang_scheduler", **asked)) is heeded


def test_with_a_kubeconfig_the_services_drive_that_cluster_and_take_their_own_pods_alone() -> None:
    asked = {"kubeconfig": Path("/etc/kube"), "context": "lab", "webhook_url": "https://10.0.0.5:9443"}

    gateway, scheduler, admission = (
        flags(name, **asked) for name in ("cluster_gateway", "gang_scheduler", "admission")
    )

    assert (gateway["driver"], gateway["kubeconfig"], gateway["kube-context"]) == ("kubernetes", "/etc/kube", "lab")
    assert scheduler["scheduler-names"] == "tidegate"
    assert "load-aware" not in scheduler
    assert (admission["webhook-url"], admission["webhook-port"]) == ("https://10.0.0.5:9443", "9443")
    assert admission["access"] == "users,cluster"
    assert "access" not in flags("admission")


def test_a_setting_of_a_service_reaches_that_service_alone_and_wins_over_what_it_is_told_otherwise() -> None:
    given = (ServiceSetting("gang_scheduler", "load_aware", "{}"), ServiceSetting("queue_manager", "overcommit", "1.2"))

    assert flags("gang_scheduler", service_settings=given)["load-aware"] == "{}"
    assert flags("queue_manager", service_settings=given)["overcommit"] == "1.2"
    assert "overcommit" not in flags("job_controller", service_settings=given)


def test_a_setting_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    option = ServiceSettingOption()

    assert str(option("gang_scheduler.placement=spread")) == "gang_scheduler.placement=spread"
    for text, told in (
        ("placement=spread", "is not SERVICE.SETTING=VALUE"),
        ("scheduler.placement=spread", "one of admission"),
        ("gang_scheduler.placment=spread", "placement, preemption"),
    ):
        with pytest.raises(click.BadParameter, match=told):
            option(text)


def test_who_runs_programs_that_ask_inference_services_is_told_where_they_are_asked() -> None:
    path = RequestPath("0.0.0.0", 7480, "127.0.0.80")
    told = {name: flags(name, path) for name in ("inference_gateway", "node_agent", "cluster_gateway")}

    assert (told["inference_gateway"]["gateway-port"], told["inference_gateway"]["inner-host"]) == ("7480", path.inner)
    assert told["node_agent"]["inference-gateway"] == "127.0.0.1:7480"
    assert told["cluster_gateway"]["inference-gateway"] == "127.0.0.80"
    assert "gateway-port" not in told["node_agent"] and "inference-gateway" not in flags("node_agent")
    without = RequestPath("127.0.0.1", 7480)
    assert "inference-gateway" not in flags("cluster_gateway", without)
    assert "inner-host" not in flags("inference_gateway", without)


def test_requests_are_taken_where_the_settings_of_the_service_say(tmp_path: Path) -> None:
    port = free_port()
    said = (ServiceSetting("inference_gateway", "gateway_port", str(port)),)
    assert request_path(tmp_path, said, inner=False) == ("127.0.0.1", port, "")
    everywhere = (*said, ServiceSetting("inference_gateway", "gateway_host", "0.0.0.0"))
    assert request_path(tmp_path, everywhere, inner=False).address == f"127.0.0.1:{port}"
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ValueError, match=f"port {port} is taken"):
        request_path(tmp_path, said, inner=False)


def test_the_places_of_a_proxy_that_was_left_behind_are_taken_again(tmp_path: Path) -> None:
    """It is taken over only where it would be started anew just like this; a note of a process that ended means nothing."""
    folder = tmp_path / "inference_gateway"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
        said = (ServiceSetting("inference_gateway", "gateway_port", str(port)),)
        places = [
            {"socket_address": {"address": host, "port_value": at}}
            for host, at in (("127.0.0.1", port), ("127.0.0.95", 80))
        ]
        listener = {"address": places[0], "additional_addresses": [{"address": places[1]}]}
        (folder / "bootstrap.json").write_text(json.dumps({"static_resources": {"listeners": [listener]}}))
        note = {"pid": os.getpid(), "began": endpoint.start_time(os.getpid()), "bootstrap": ""}
        (folder / "proxy.json").write_text(json.dumps(note))
        assert request_path(tmp_path, said, inner=True) == ("127.0.0.1", port, "127.0.0.95")
        (folder / "proxy.json").write_text(json.dumps({**note, "began": "0"}))
        with pytest.raises(ValueError, match="is taken"):
            request_path(tmp_path, said, inner=True)
