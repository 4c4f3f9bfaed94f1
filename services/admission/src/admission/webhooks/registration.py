"""What an API server is told of our webhooks: which requests they are asked about, and what happens when they do not answer."""

import base64
from dataclasses import dataclass

from admission.domain.definitions import DEFINED
from admission.domain.rules import RULES
from kube import KINDS, Manifest

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
CONFIGURATION = "tidegate-admission"
TIMEOUT_SECONDS = 5
NEVER = ("kube-system", "kube-node-lease")
"""Namespaces that no webhook is asked about: a cluster must be able to start and to mend itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the webhooks are served: ``url`` outside of the cluster, else the service ``name`` in ``namespace``."""

    namespace: str
    name: str
    url: str = ""

    def client(self, path: str, authority: bytes) -> Manifest:
        """How the API server reaches ``path``, and whom it trusts there."""
        bundle = base64.b64encode(authority).decode()
        if self.url:
            return {"url": self.url.rstrip("/") + path, "caBundle": bundle}
        return {"service": {"name": self.name, "namespace": self.namespace, "path": path}, "caBundle": bundle}


def configurations(place: Place, authority: bytes) -> dict[str, Manifest]:
    """The two configurations, by their plural names."""
    return {
        MUTATING: _configuration("MutatingWebhookConfiguration", place, "/mutate", authority, ("CREATE", "UPDATE")),
        VALIDATING: _configuration(
            "ValidatingWebhookConfiguration", place, "/validate", authority, ("CREATE", "UPDATE", "DELETE")
        ),
    }


def _configuration(kind: str, place: Place, path: str, authority: bytes, operations: tuple[str, ...]) -> Manifest:
    webhook: Manifest = {
        "name": "admission.tidegate.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": place.client(path, authority),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "namespaceSelector": _outside({place.namespace, *NEVER}),
        "rules": _rules(operations),
    }
    if kind.startswith("Mutating"):
        webhook["reinvocationPolicy"] = "IfNeeded"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": CONFIGURATION, "labels": {"app.kubernetes.io/part-of": "tidegate"}},
        "webhooks": [webhook],
    }


def _outside(namespaces: set[str]) -> Manifest:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": sorted(namespaces)}
    return {"matchExpressions": [expression]}


def _rules(operations: tuple[str, ...]) -> list[Manifest]:
    """One rule per API group: all kinds that have rules of ours and that no cluster has by itself."""
    groups: dict[str, set[str]] = {}
    for kind in DEFINED:
        if kind in RULES:
            groups.setdefault(KINDS[kind].group, set()).add(KINDS[kind].plural)
    return [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": list(operations),
            "resources": sorted(plurals),
            "scope": "*",
        }
        for group, plurals in sorted(groups.items())
    ]
