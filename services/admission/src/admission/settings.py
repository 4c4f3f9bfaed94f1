"""What admission is told when it starts."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from chassis.settings import ServiceSettings

_FORWARDED = ("localhost", "127.0.0.1")
"""Whoever has the port forwarded calls the server by these."""


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``access`` says who may use the API: ``users`` are those of ``users.yaml`` in the data folder, ``cluster`` those whom the
    cluster knows, with the rights that they have there. A missing ``users.yaml`` is made with an ``admin``, unless
    ``admin_token`` gives the token of that one. It is served at ``health_port``, in the clear; with an ``api_port`` there
    instead, over TLS, and whoever calls knows the server by one of ``api_names``.

    With ``webhook_port`` manifests that reach the API server of ``kubeconfig`` (empty: of the cluster in which this runs as a
    pod) are admitted here too. The server finds the webhooks at ``webhook_url``, else at the service ``webhook_service`` in
    ``webhook_namespace``. Their certificate is made here and kept in a Secret of that namespace; with a ``tls_folder`` it is the
    one of its files ``tls.crt`` and ``tls.key``, which somebody else renews. Whom the API server is to trust is then said by the
    folder's ``ca.crt``, or filled in by cert-manager for its certificate ``inject_ca_from`` (``NAMESPACE/NAME``).

    New pods with labels that ``scheduled_pods`` selects, in namespaces that ``scheduled_namespaces`` selects, are placed by
    ``scheduler_name`` where they name nobody; without ``scheduled_namespaces`` none are. What ``unreviewed_users`` write to our
    own kinds is not reviewed: the user as whom decisions are carried out. Without any, decisions are known by their field manager,
    which whoever may write can state as well.

    With ``metrics_api_port`` samples are served to the API server, as ``custom.metrics.k8s.io`` and ``external.metrics.k8s.io``; it
    finds that server at the service of the webhooks. ``metrics_apis`` (``custom``, ``external``) are those whose APIServices are
    told by which authority it is trusted.
    """

    admin_token: str = ""
    kubeconfig: str = ""
    kube_context: str = ""
    access: tuple[str, ...] = ("users",)
    api_host: str = "127.0.0.1"
    api_port: int = 0
    api_names: tuple[str, ...] = ()
    webhook_host: str = "127.0.0.1"
    webhook_port: int = 0
    webhook_url: str = ""
    webhook_service: str = "tidegate-admission"
    webhook_namespace: str = "tidegate-system"
    tls_folder: str = ""
    inject_ca_from: str = ""
    scheduler_name: str = "tidegate"
    scheduled_namespaces: str = "tidegate.dev/schedule=true"
    scheduled_pods: str = "tidegate.dev/schedule!=false"
    unreviewed_users: tuple[str, ...] = ()
    metrics_api_host: str = "127.0.0.1"
    metrics_api_port: int = 0
    metrics_apis: tuple[str, ...] = ()

    @property
    def uses_cluster(self) -> bool:
        """Whether an API server is needed."""
        return bool(self.webhook_port or self.api_port or self.metrics_api_port or "cluster" in self.access)

    @property
    def names(self) -> tuple[str, ...]:
        """What the server is called by: those for whom its certificate is made."""
        webhooks = self.webhook_names if self.webhook_port else ()
        metrics = (self._service_name,) if self.metrics_api_port else ()
        return tuple(dict.fromkeys((*webhooks, *metrics, *self.api_names, *(_FORWARDED if self.api_port else ()))))

    @property
    def webhook_names(self) -> tuple[str, ...]:
        """What the API server calls the webhooks' server by."""
        if self.webhook_url:
            return (urlsplit(self.webhook_url).hostname or "",)
        return (self._service_name,)

    @property
    def _service_name(self) -> str:
        return f"{self.webhook_service}.{self.webhook_namespace}.svc"
