"""What admission has on a Kubernetes cluster: its certificate, its webhooks, and an API for those whom the cluster knows."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from admission.callers import Callers
from admission.cluster_callers import ClusterCallers
from admission.domain.pod_review import SchedulerRule
from admission.metrics_api.front_proxy import FrontProxy
from admission.metrics_api.registration import GROUPS, MetricsRegistrar, services_of
from admission.metrics_api.server import MetricsServer
from admission.secured_api import SecuredApi
from admission.settings import Settings
from admission.view import View
from admission.webhooks.certificate_keeper import CertificateKeeper, MountedFolder, OwnSecret
from admission.webhooks.registrar import Registrar
from admission.webhooks.registration import Asked, Place
from admission.webhooks.server import Address, WebhookServer
from apiserver import Api, NoAccess, load
from chassis.process import Context, Parts
from chassis.rpc_server import Add
from kube.selectors import SelectorError, label_selector

MakeApi = Callable[[Callers | None], tuple[Sequence[Add], Sequence[str]]]
"""The gRPC services, and their names, for those whom a cluster knows besides the users of the file."""


async def add_cluster_parts(parts: Parts, settings: Settings, context: Context, view: View, make_api: MakeApi) -> None:
    """Add to ``parts`` what ``settings`` ask for. Ends the process where it cannot be made."""
    try:
        access = await load(Path(settings.kubeconfig) if settings.kubeconfig else None, settings.kube_context)
        rule = _scheduler_rule(settings)
    except (NoAccess, SelectorError) as error:
        raise SystemExit(str(error)) from None
    api = Api(access)
    api.open()
    parts.tasks["connections"] = _held_open(api)
    callers = ClusterCallers(api)
    services, names = make_api(callers if "cluster" in settings.access else None)
    if not (settings.api_port or settings.webhook_port or settings.metrics_api_port):
        parts.rpc, parts.rpc_names = services, names
        return
    keeper = _keeper(settings, api)
    parts.tasks["certificate"] = keeper.run()
    if settings.api_port:
        address = f"{settings.api_host}:{settings.api_port}"
        secured = SecuredApi(address, keeper, context.measures, names, services)
        parts.tasks["api"] = secured.run()
        parts.ready = [*parts.ready, secured.ready]
    else:
        parts.rpc, parts.rpc_names = services, names
    if settings.webhook_port:
        _add_webhooks(parts, settings, api, view, keeper, rule)
    if settings.metrics_api_port:
        _add_metrics(parts, settings, api, view, keeper, callers)


def _add_metrics(
    parts: Parts, settings: Settings, api: Api, view: View, keeper: CertificateKeeper, callers: ClusterCallers
) -> None:
    if unknown := {*settings.metrics_apis} - GROUPS.keys():
        raise SystemExit(f"metrics_apis: {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}")
    proxy = FrontProxy(api)
    address = Address(settings.metrics_api_host, settings.metrics_api_port)
    server = MetricsServer(view, keeper, proxy, callers, address)
    registrar = MetricsRegistrar(api, keeper, services_of(settings.metrics_apis))
    parts.tasks |= {"front proxy": proxy.run(), "metrics": server.run(), "metrics registration": registrar.run()}
    parts.ready = [*parts.ready, server.ready]


def _add_webhooks(
    parts: Parts, settings: Settings, api: Api, view: View, keeper: CertificateKeeper, rule: SchedulerRule | None
) -> None:
    server = WebhookServer(view, keeper, Address(settings.webhook_host, settings.webhook_port), rule)
    place = Place(settings.webhook_namespace, settings.webhook_service, settings.webhook_url)
    asked = Asked(place, rule, unreviewed=settings.unreviewed_users, injected_from=settings.inject_ca_from)
    registrar = Registrar(api, view, keeper, asked)
    parts.tasks |= {"webhooks": server.run(), "registration": registrar.run()}
    parts.ready = [*parts.ready, server.ready, registrar.ready]


async def _held_open(api: Api) -> None:
    """Until the process stops."""
    try:
        await asyncio.Event().wait()
    finally:
        await api.close()


def _keeper(settings: Settings, api: Api) -> CertificateKeeper:
    if settings.tls_folder:
        return CertificateKeeper(MountedFolder(Path(settings.tls_folder)))
    return CertificateKeeper(OwnSecret(api, settings.webhook_namespace, settings.names))


def _scheduler_rule(settings: Settings) -> SchedulerRule | None:
    """Raises SelectorError."""
    if not settings.scheduled_namespaces:
        return None
    namespaces, pods = label_selector(settings.scheduled_namespaces), label_selector(settings.scheduled_pods)
    return SchedulerRule(settings.scheduler_name, namespaces, pods)
