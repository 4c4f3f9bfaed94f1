"""What of cert-manager a release meets: certificates that it asked for become Secrets, and webhooks are told whom to trust.

cert-manager itself cannot be had from module source: its programs are modules of their own that are not published. This does the
same by the same objects: a Certificate's Secret of the type kubernetes.io/tls with `ca.crt`, and `caBundle` of what is annotated.
"""

import base64
import datetime
from dataclasses import dataclass, field
from typing import Any

from cluster_tools import DEFINITIONS, REGISTRATION, eventually
from control_plane import ControlPlane

from admission.webhooks.certificates import Certificates, make
from admission.webhooks.registration import INJECTED

GROUP = "cert-manager.io"
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def define(plane: ControlPlane) -> None:
    """Certificates and Issuers, with any content."""
    for plural, kind in (("certificates", "Certificate"), ("issuers", "Issuer")):
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything}}}
        names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
        spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
        metadata = {"name": f"{plural}.{GROUP}"}
        body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
        plane.request("POST", DEFINITIONS, {**body, "spec": spec})
    eventually(lambda: GROUP in {one["name"] for one in plane.request("GET", "/apis")["groups"]})


@dataclass(slots=True)
class StandIn:
    """Issues for the namespace ``namespace`` of ``plane``, when it is told to."""

    plane: ControlPlane
    namespace: str
    made: dict[str, Certificates] = field(default_factory=dict)

    def issue(self, name: str) -> dict[str, bytes]:
        """Make, or renew, what the Certificate ``name`` asks for; what its Secret holds then."""
        asked = self.plane.request("GET", f"/apis/{GROUP}/v1/namespaces/{self.namespace}/certificates/{name}")["spec"]
        names = [*asked.get("dnsNames", ()), *asked.get("ipAddresses", ())]
        # Who signs itself has a new authority each time.
        one = self.made[name] = make(names, datetime.datetime.now(datetime.UTC))
        files = {"ca.crt": one.authority, "tls.crt": one.serving, "tls.key": one.serving_key}
        body: dict[str, Any] = {
            "metadata": {"name": asked["secretName"], "annotations": {f"{GROUP}/certificate-name": name}},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(content).decode() for key, content in files.items()},
        }
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        there = {item["metadata"]["name"] for item in self.plane.request("GET", path)["items"]}
        if asked["secretName"] in there:
            self.plane.request("PATCH", f"{path}/{asked['secretName']}", body, "application/merge-patch+json")
        else:
            self.plane.request("POST", path, body)
        return files

    def inject(self) -> int:
        """Tell annotated webhook configurations whom to trust; how many webhooks were told."""
        told = 0
        for plural in WEBHOOKS:
            for item in self.plane.request("GET", f"{REGISTRATION}/{plural}")["items"]:
                source = item["metadata"].get("annotations", {}).get(INJECTED, "")
                namespace, _, name = source.partition("/")
                if namespace != self.namespace or name not in self.made:
                    continue
                for webhook in item.get("webhooks", ()):
                    webhook["clientConfig"]["caBundle"] = base64.b64encode(self.made[name].authority).decode()
                    told += 1
                self.plane.request("PUT", f"{REGISTRATION}/{plural}/{item['metadata']['name']}", item)
        return told
