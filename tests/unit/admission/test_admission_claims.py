"""Which resource claims are taken."""

from typing import Any

import pytest

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from kube import Manifest, Store, from_manifest


def claim(*requests: Any, kind: str = "ResourceClaim") -> Manifest:
    spec: Manifest = {"devices": {"requests": list(requests)}}
    spec = {"spec": spec} if kind.endswith("Template") else spec
    metadata = {"name": "c", "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def ask(name: str = "g", **exactly: Any) -> Manifest:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def namespace(**labels: str) -> Store:
    store = Store()
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
    store.put(from_manifest(manifest))
    return store


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([], "at least one request"),
        (["x"], "must be a mapping"),
        ([ask(), ask()], "a name of its own"),
        ([{"name": "g"}], "either exactly or firstAvailable"),
        ([{"name": "g", "exactly": {}}], "name the class"),
        ([{"name": "g", "firstAvailable": [{"name": "a"}]}], "name the class"),
        ([ask(allocationMode="Some")], "must be ExactCount or All"),
        ([ask(count=0)], "must be from 1 to 32"),
        ([ask(count="2")], "must be a whole number"),
        ([ask(allocationMode="All", count=2)], "goes with ExactCount only"),
        ([ask(adminAccess=True)], "resource.kubernetes.io/admin-access=true"),
        ([ask(capacity={"requests": {"memory": "much"}})], "must be a quantity"),
        ([ask(capacity={"requests": "much"})], "capacity.requests"),
    ],
)
def test_a_claim_that_cannot_be_met_or_may_not_be_made_is_refused(kind: str, requests: list[Any], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        admit(claim(*requests, kind=kind), None, namespace())
    assert said in str(caught.value)


def test_a_sound_claim_is_taken_and_may_not_change() -> None:
    store = namespace(**{"resource.kubernetes.io/admin-access": "true"})
    taken = claim(
        ask(count=2),
        {"name": "f", "firstAvailable": [{"name": "a", "deviceClassName": "x"}]},
        ask("w", adminAccess=True),
    )
    admit(taken, None, store)
    old = from_manifest(claim(ask()))
    admit(claim(ask()), old, store)
    with pytest.raises(Rejected, match="may not change"):
        admit(claim(ask(count=2)), old, store)
