"""What each service is told when the system is started on one machine."""

from pathlib import Path

import click
import pytest

from tidegate_cli.supervisor.plan import Ports, UpSettings, service_program
from tidegate_cli.supervisor.service_settings import ServiceSetting, ServiceSettingOption


def flags(name: str, requests: int = 0, **asked: object) -> dict[str, str]:
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
    told = {name: flags(name, 7480) for name in ("inference_gateway", "node_agent")}

    assert told["inference_gateway"]["gateway-port"] == "7480"
    assert told["node_agent"]["inference-gateway"] == "127.0.0.1:7480"
    assert "gateway-port" not in told["node_agent"] and "inference-gateway" not in flags("node_agent")
