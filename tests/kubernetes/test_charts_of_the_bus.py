"""What the charts come to of the bus: one server or three, over TLS, or one that is there already."""

import re

import pytest
from helm_tools import (
    EXTERNAL,
    NAMESPACE,
    OVER_TLS,
    SERVICE_CHARTS,
    THREE,
    Helm,
    Manifest,
    arguments,
    deep,
    named,
    of_kind,
    pods,
)


def test_every_port_of_an_existing_bus_is_let_out(helm: Helm) -> None:
    urls = {"nats://bus1": [4222], "tls://a.example:4333,nats://b.example:4444,nats://c.example:4333": [4333, 4444]}
    for url, wanted in urls.items():
        objects = helm.template("tidegate", deep(EXTERNAL, {"global": {"nats": {"external": {"url": url}}}}))
        (rule,) = named(objects, "NetworkPolicy", "tidegate-gang-scheduler")["spec"]["egress"][1:]
        assert [port["port"] for port in rule["ports"]] == wanted


def test_each_service_has_its_own_login_and_no_other_is_mounted(usual: list[Manifest]) -> None:
    for service in SERVICE_CHARTS:
        (spec,) = [spec for name, spec in pods(usual) if name == f"tidegate-{service}"]
        secrets = [volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume]
        assert secrets == [f"tidegate-nats-{service}"]
        assert named(usual, "Secret", secrets[0])["stringData"]["username"] == service.replace("-", "_")
    passwords = [item["stringData"]["password"] for item in of_kind(usual, "Secret") if "basic-auth" in item["type"]]
    assert len(set(passwords)) == len(passwords) and min(map(len, passwords)) >= 32


def test_three_servers_know_one_another_and_streams_are_kept_on_all(helm: Helm) -> None:
    objects = helm.template("tidegate", THREE)
    conf = named(objects, "Secret", "tidegate-nats-config")["stringData"]["nats.conf"]
    assert re.findall(r"@(\S+):6222", conf) == [f"tidegate-nats-{n}.tidegate-nats-servers" for n in range(3)]
    assert named(objects, "StatefulSet", "tidegate-nats")["spec"]["replicas"] == 3
    assert {arguments(objects, f"tidegate-{service}")["nats-replicas"] for service in SERVICE_CHARTS} == {"3"}


@pytest.mark.parametrize("maker", ["the chart", "cert-manager", "somebody else"])
def test_the_bus_is_spoken_to_over_tls(helm: Helm, maker: str) -> None:
    """Every service trusts what vouches for it, and none but the bus sees its key."""
    more: Manifest = {"cert-manager": {"certManager": {"enabled": True}}, "somebody else": {"secretName": "theirs"}}
    tls = {"global": {"nats": {"tls": {"enabled": True, **more.get(maker, {})}}}}
    objects = helm.template("tidegate", deep(THREE, tls))

    name = "theirs" if maker == "somebody else" else "tidegate-nats-tls"
    conf = named(objects, "Secret", "tidegate-nats-config")["stringData"]["nats.conf"]
    assert len(re.findall(r"\btls \{ cert_file: \"/etc/nats-tls/tls.crt\"", conf)) == 2
    for service in SERVICE_CHARTS:
        assert arguments(objects, f"tidegate-{service}")["nats-authority"] == "/etc/tidegate/authority/ca.crt"
        (spec,) = [spec for found, spec in pods(objects) if found == f"tidegate-{service}"]
        (volume,) = [one["secret"] for one in spec["volumes"] if one["name"] == "authority"]
        assert (volume["secretName"], volume["items"]) == (name, [{"key": "ca.crt", "path": "ca.crt"}])
    (bus,) = [spec for found, spec in pods(objects) if found == "tidegate-nats"]
    assert {"name": "tls", "secret": {"secretName": name, "defaultMode": 0o440}} in bus["volumes"]
    made = {item["kind"] for item in objects if item["metadata"]["name"] in (name, "tidegate-nats")}
    assert ("Secret" in made, "Certificate" in made) == (maker == "the chart", maker == "cert-manager")


def test_the_certificate_of_the_bus_is_for_all_names_that_it_is_called_by(helm: Helm) -> None:
    from base64 import b64decode

    from cryptography import x509

    objects = helm.template("tidegate", deep(THREE, OVER_TLS))
    data = named(objects, "Secret", "tidegate-nats-tls")["data"]
    certificate = x509.load_pem_x509_certificate(b64decode(data["tls.crt"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    conf = named(objects, "Secret", "tidegate-nats-config")["stringData"]["nats.conf"]
    called = {*re.findall(r"@(\S+):6222", conf), "tidegate-nats", f"tidegate-nats.{NAMESPACE}.svc"}
    assert called <= set(names.get_values_for_type(x509.DNSName))
    authority = x509.load_pem_x509_certificate(b64decode(data["ca.crt"]))
    certificate.verify_directly_issued_by(authority)
    assert data.keys() == {"ca.crt", "tls.crt", "tls.key"}


def test_an_existing_bus_takes_the_place_of_ours(helm: Helm) -> None:
    objects = helm.template("tidegate", EXTERNAL)
    assert not of_kind(objects, "StatefulSet")
    assert arguments(objects, "tidegate-admission")["nats-url"] == "nats://bus.example:4333"
    (spec,) = [spec for name, spec in pods(objects) if name == "tidegate-admission"]
    secrets = [volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume]
    assert secrets == ["bus-admission", "bus-ca"]
    egress = named(objects, "NetworkPolicy", "tidegate-admission")["spec"]["egress"]
    assert any(port["port"] == 4333 for rule in egress for port in rule["ports"])
