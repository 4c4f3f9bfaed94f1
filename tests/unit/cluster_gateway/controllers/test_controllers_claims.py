"""Resource claims that are made for pods from templates."""

from typing import Any

import pytest

from kube import Key

CLAIM = "ResourceClaim.resource.k8s.io"
ASKED = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}


@pytest.fixture
def claiming(slow_town: Any) -> Any:
    """A pod that asks for a claim of a template; nothing starts by itself."""
    town = slow_town
    spec = {"containers": [{"name": "c"}], "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "one"}]}
    town.apply("Pod", "p", spec)
    return town


def template(town: Any) -> None:
    spec = {"metadata": {"labels": {"made": "so"}}, "spec": ASKED}
    town.cluster.create(Key("ResourceClaimTemplate.resource.k8s.io", "default", "one"), {}, {"spec": spec}, {})
    town.react()


def claims(town: Any) -> list[Any]:
    return list(town.cluster.store.of_kind(CLAIM).values())


def test_a_claim_is_made_once_its_template_is_there_and_the_pod_is_told_its_name(claiming: Any) -> None:
    assert claims(claiming) == []
    template(claiming)
    (claim,) = claims(claiming)
    assert (claim.spec, claim.labels, claim.controller["name"]) == (ASKED, {"made": "so"}, "p")
    assert claiming.status("Pod", "p")["resourceClaimStatuses"] == [{"name": "dev", "resourceClaimName": claim.name}]
    assert claim.name.startswith("p-dev-")
    claiming.restart()
    claiming.react()
    assert len(claims(claiming)) == 1


def test_a_claim_goes_when_its_pod_has_ended(claiming: Any) -> None:
    template(claiming)
    claiming.start("p")
    assert len(claims(claiming)) == 1
    claiming.finish("p")
    assert claims(claiming) == []


def test_a_claim_goes_with_its_pod(claiming: Any) -> None:
    template(claiming)
    claiming.delete("Pod", "p")
    assert claims(claiming) == []


def test_a_claim_that_is_deleted_in_use_stays_until_its_pod_has_ended(claiming: Any) -> None:
    """Else its devices would go to the next pod while this one uses them."""
    template(claiming)
    claiming.start("p")
    (claim,) = claims(claiming)
    user = {"resource": "pods", "name": "p", "uid": claiming.read("Pod", "p").uid}
    claiming.cluster.set_status(claim, {"reservedFor": [user], "allocation": {"devices": {}}})
    claiming.cluster.delete(claims(claiming)[0])
    claiming.react()
    assert [one.deleting for one in claims(claiming)] == [True]
    claiming.finish("p")
    claiming.cluster.set_status(claims(claiming)[0], {"reservedFor": None, "allocation": None})
    claiming.react()
    assert claims(claiming) == []
