"""The access that a pod has to its cluster: by the variables and the files that every pod with a token is given."""

from pathlib import Path

import pytest
from kubernetes.aio.config import incluster_config

from apiserver import NoAccess, load


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a pod's token, with one."""
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_text("a certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


@pytest.mark.usefixtures("pod")
async def test_address_and_token_are_those_that_the_pod_was_given() -> None:
    access = await load(None)
    assert access.host == "https://10.96.0.1:443"
    assert await access.headers() == {"Authorization": "bearer first"}


@pytest.mark.usefixtures("pod")
async def test_an_address_of_ipv6_stands_in_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert (await load(None)).host == "https://[fd00::1]:443"


async def test_a_token_that_is_refused_is_read_anew(pod: Path) -> None:
    """The kubelet renews it in its file long before it runs out."""
    access = await load(None)
    (pod / "token").write_text("second")
    await access.renew()
    assert await access.headers() == {"Authorization": "bearer second"}


async def test_without_a_token_it_says_whose_access_is_missing(pod: Path) -> None:
    (pod / "token").unlink()
    with pytest.raises(NoAccess, match="the service account of this pod gives no access"):
        await load(None)
