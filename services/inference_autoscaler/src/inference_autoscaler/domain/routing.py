"""How requests from outside find an InferenceService on a cluster whose own parts carry them: what an operator chose."""

from dataclasses import dataclass

from kube import Manifest

HTTP_ROUTE, INGRESS = "HTTPRoute.gateway.networking.k8s.io", "Ingress.networking.k8s.io"
WAYS = ("", "HTTPRoute", "Ingress", "LoadBalancer")
DOMAIN = "example.com"
"""Where services are, as KServe is configured unless somebody says otherwise."""
_KEYS = frozenset(("by", "gateway", "domain", "ingressClass", "through"))


@dataclass(frozen=True, slots=True)
class Routing:
    """``by`` is what is made for each service: an HTTPRoute, an Ingress, a Service of the type LoadBalancer, or "" for nothing.

    ``gateway`` is the Gateway (``namespace/name``) of the HTTPRoutes; ``domain`` is below what the services' names are. ``through`` is
    the Service (``namespace/name``) of the inference gateway that HTTPRoutes lead to, where requests wait for services that
    sleep; "" leads to the replicas themselves.
    """

    by: str = ""
    gateway: str = ""
    domain: str = DOMAIN
    ingress_class: str = ""
    through: str = ""

    @classmethod
    def of(cls, given: Manifest) -> "Routing":
        """``given`` has the keys by, gateway, domain, ingressClass and through. Raises ValueError for what makes no sense."""
        if unknown := given.keys() - _KEYS:
            raise ValueError(f"{', '.join(sorted(unknown))}: no such key; there are {', '.join(sorted(_KEYS))}")
        told = {name: str(value or "") for name, value in given.items()}
        by, gateway, through = told.get("by", ""), told.get("gateway", ""), told.get("through", "")
        if by not in WAYS:
            raise ValueError(f"by: {by!r} is none of {', '.join(WAYS[1:])}")
        if by == "HTTPRoute" and not all(place_of(gateway)):
            raise ValueError(f"gateway: {gateway!r} is not NAMESPACE/NAME; HTTPRoutes belong to a Gateway")
        if through and not (by == "HTTPRoute" and all(place_of(through))):
            raise ValueError(
                f"through: {through!r} is a NAMESPACE/NAME that HTTPRoutes lead to; nothing else leads there"
            )
        return cls(by, gateway, told.get("domain") or DOMAIN, told.get("ingressClass", ""), through)

    def host(self, name: str, namespace: str, *, is_standard: bool) -> str:
        """Where a service, or the component ``name`` of one, is called from outside; it depends on the mode, as with KServe."""
        return f"{name}{'-' if is_standard else '.'}{namespace}.{self.domain}"


def place_of(text: str) -> tuple[str, str]:
    """The namespace and the name of ``namespace/name``."""
    namespace, _, name = text.partition("/")
    return namespace, name
