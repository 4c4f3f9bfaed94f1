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
        ([ask(selectors=5)], "selectors: 5: must be a list"),
        ([ask(selectors=["true"])], "selectors[0]"),
        ([ask(selectors=[{"cel": {"expression": 5}}])], "selectors[0].cel.expression"),
        ([ask(tolerations=[{"operator": "Is"}])], "tolerations[0].operator"),
    ],
)
def test_a_claim_that_cannot_be_met_or_may_not_be_made_is_refused(kind: str, requests: list[Any], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        admit(claim(*requests, kind=kind), None, namespace())
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"requests": ["h"], "matchAttribute": "a/b"}, "constraints[0].requests[0]: 'h': is the name of no request"),
        ({"requests": ["g"]}, "needs either matchAttribute or distinctAttribute"),
        ({"matchAttribute": "a/b", "distinctAttribute": "a/c"}, "needs either matchAttribute or distinctAttribute"),
        ({"requests": [["g"]], "matchAttribute": "a/b"}, "constraints[0].requests[0]"),
    ],
)
def test_a_constraint_is_about_one_attribute_of_requests_that_are_there(constraint: Manifest, said: str) -> None:
    made = claim(ask())
    made["spec"]["devices"]["constraints"] = [constraint]
    with pytest.raises(Rejected) as caught:
        admit(made, None, namespace())
    assert said in str(caught.value)


def test_the_selectors_of_a_class_are_expressions() -> None:
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    for selectors in (5, ["true"], [{"cel": 5}], [{"cel": {"expression": []}}]):
        with pytest.raises(Rejected, match=r"spec\.selectors"):
            admit({**made, "spec": {"selectors": selectors}}, None, namespace())
    admit({**made, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}, None, namespace())


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"resourceClaims": [{"name": "x"}]}, "spec.resourceClaims[0]"),
        ({"resourceClaims": [{"name": "x", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]}, "spec.resourceClaims[0]"),
        ({"resourceClaims": [{"name": "x", "resourceClaimName": "a"}] * 2}, "spec.resourceClaims[1].name"),
        ({"resourceClaims": [{"name": "No", "resourceClaimName": "a"}]}, "spec.resourceClaims[0].name"),
        ({"resourceClaims": "all"}, "spec.resourceClaims"),
        ({"resourceClaims": [{"name": "x", "resourceClaimName": ["a"]}]}, "spec.resourceClaims[0].resourceClaimName"),
        ({"claims": [{"name": "y"}]}, "spec.containers[0].resources.claims[0].name"),
    ],
)  # fmt: skip
def test_a_pod_names_each_claim_once_and_its_containers_name_those(gate: Any, spec: dict[str, Any], path: str) -> None:
    claims = spec.pop("claims", [])
    container = {"name": "c", "image": "i", "resources": {"claims": claims}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    assert list(gate.wrong(pod)) == [path]


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
