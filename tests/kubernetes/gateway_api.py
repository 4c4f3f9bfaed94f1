"""The kind HTTPRoute on a cluster without a Gateway, for tests of what is made of it."""

from typing import Any
from urllib.error import HTTPError

from applied import get
from cluster_tools import DEFINITIONS, eventually
from control_plane import ControlPlane

GATEWAYS = "/apis/gateway.networking.k8s.io/v1"
ROUTES = f"{GATEWAYS}/namespaces/default/httproutes"
ROUTE_DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "httproutes.gateway.networking.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, stands in for the Gateway API's own"},
    },
    "spec": {
        "group": "gateway.networking.k8s.io",
        "names": {"kind": "HTTPRoute", "listKind": "HTTPRouteList", "plural": "httproutes", "singular": "httproute"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


def is_there(plane: ControlPlane, path: str) -> bool:
    try:
        get(plane, path)
    except HTTPError as error:
        if error.code not in (404, 429):  # the latter while a new kind is prepared
            raise
        return False
    return True


def define_routes(plane: ControlPlane) -> None:
    """From now on the cluster has the kind."""
    if not is_there(plane, f"{GATEWAYS}/httproutes"):
        plane.request("POST", DEFINITIONS, ROUTE_DEFINITION)
        eventually(lambda: is_there(plane, f"{GATEWAYS}/httproutes"))
