"""What admission does on a Kubernetes cluster besides answering its own API: its certificates and its webhooks."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from admission.domain.pod_review import SchedulerRule
from admission.settings import Settings
from admission.view import View
from admission.webhooks.certificate_keeper import CertificateKeeper, MountedFolder, OwnSecret
from admission.webhooks.registrar import Registrar
from admission.webhooks.registration import Asked, Place
from admission.webhooks.server import Address, WebhookServer
from apiserver import Api, NoAccess, load
from kube.selectors import SelectorError, label_selector


@dataclass(slots=True)
class ClusterParts:
    """``api`` is open. Endless tasks by name, and the events that say that each is ready."""

    api: Api
    tasks: dict[str, Coroutine[object, object, None]] = field(default_factory=dict)
    ready: list[asyncio.Event] = field(default_factory=list)


async def cluster_parts(settings: Settings, view: View) -> ClusterParts:
    """The parts that ``settings`` ask for. Ends the process where they cannot be made."""
    try:
        access = await load(Path(settings.kubeconfig) if settings.kubeconfig else None, settings.kube_context)
        rule = _scheduler_rule(settings)
    except (NoAccess, SelectorError) as error:
        raise SystemExit(str(error)) from None
    parts = ClusterParts(Api(access))
    parts.api.open()
    parts.tasks["connections"] = _held_open(parts.api)
    keeper = _keeper(settings, parts.api)
    parts.tasks["certificate"] = keeper.run()
    if settings.webhook_port:
        server = WebhookServer(view, keeper, Address(settings.webhook_host, settings.webhook_port), rule)
        place = Place(settings.webhook_namespace, settings.webhook_service, settings.webhook_url)
        asked = Asked(place, rule, unreviewed=settings.unreviewed_users, injected_from=settings.inject_ca_from)
        registrar = Registrar(parts.api, view, keeper, asked)
        parts.tasks |= {"webhooks": server.run(), "registration": registrar.run()}
        parts.ready += [server.ready, registrar.ready]
    return parts


async def _held_open(api: Api) -> None:
    """Until the process stops."""
    try:
        await asyncio.Event().wait()
    finally:
        await api.close()


def _keeper(settings: Settings, api: Api) -> CertificateKeeper:
    if settings.tls_folder:
        return CertificateKeeper(MountedFolder(Path(settings.tls_folder)))
    return CertificateKeeper(OwnSecret(api, settings.webhook_namespace, settings.webhook_names))


def _scheduler_rule(settings: Settings) -> SchedulerRule | None:
    """Raises SelectorError."""
    if not settings.scheduled_namespaces:
        return None
    namespaces, pods = label_selector(settings.scheduled_namespaces), label_selector(settings.scheduled_pods)
    return SchedulerRule(settings.scheduler_name, namespaces, pods)
