"""Wiring: settings → view, applier, users, history → gRPC."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from admission.applier import Applier
from admission.history import History
from admission.rpc import Servicer
from admission.users import Users
from admission.view import View
from chassis.process import Context, Parts, run
from chassis.settings import ServiceSettings
from tidegate.api.v1 import api_pb2, api_pb2_grpc

if TYPE_CHECKING:
    from admission.webhooks.server import Webhooks

DECIDING = ("job_controller", "queue_manager", "gang_scheduler")


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``health_port`` is the address of the API too. Users are read from ``users.yaml`` in the data folder, which is
    made with an ``admin`` where it is missing, unless ``admin_token`` gives the token of that one.

    With ``webhook_port`` manifests that reach the API server of ``kubeconfig`` (empty: of the cluster in which this runs as a
    pod) are admitted here too. The server finds the webhooks at ``webhook_url``, else at the service ``webhook_service`` in
    ``webhook_namespace``, where their certificates are kept in any case.
    """

    admin_token: str = ""
    kubeconfig: str = ""
    kube_context: str = ""
    webhook_host: str = "127.0.0.1"
    webhook_port: int = 0
    webhook_url: str = ""
    webhook_service: str = "tidegate-admission"
    webhook_namespace: str = "tidegate-system"

    @property
    def webhook_names(self) -> tuple[str, ...]:
        """What the API server calls the webhooks' server by."""
        if self.webhook_url:
            return (urlsplit(self.webhook_url).hostname or "",)
        return (f"{self.webhook_service}.{self.webhook_namespace}.svc",)


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    history = History(context.bus, DECIDING)
    view = View(context.bus, history.hear)
    applier = Applier(context.bus, view, context.tracer)
    context.measures.watch("revision_seen", "The revision that reads are answered from.", lambda: view.revision)
    users = Users.load(settings.data_dir / "users.yaml", settings.admin_token)
    servicer = Servicer(context.bus, view, applier, users, history, context.clock)
    following = {f"history of {service}": history.follow(service) for service in DECIDING}
    tasks = {"view": view.run(), "applier": applier.run(), "outcomes": history.follow_outcomes(), **following}
    ready = [view.ready]
    if settings.webhook_port:
        webhooks = await _webhooks(settings, view)
        tasks["webhooks"] = webhooks.run()
        ready.append(webhooks.ready)
    return Parts(
        tasks=tasks,
        ready=ready,
        rpc=(lambda server: api_pb2_grpc.add_TidegateServiceServicer_to_server(servicer, server),),
        rpc_names=(api_pb2.DESCRIPTOR.services_by_name["TidegateService"].full_name,),
    )


async def _webhooks(settings: Settings, view: View) -> "Webhooks":
    # The official client takes half a second to be loaded: only who needs it waits for it.
    from admission.webhooks.registration import Place
    from admission.webhooks.server import Webhooks, WebhookSettings
    from apiserver import Api, NoAccess, load

    try:
        access = await load(Path(settings.kubeconfig) if settings.kubeconfig else None, settings.kube_context)
    except NoAccess as error:
        raise SystemExit(str(error)) from None
    place = Place(settings.webhook_namespace, settings.webhook_service, settings.webhook_url)
    served = WebhookSettings(settings.webhook_host, settings.webhook_port, settings.webhook_names, place)
    return Webhooks(Api(access), view, served)


def main() -> None:
    """Run the service until it is told to stop."""
    run("admission", Settings, build)


if __name__ == "__main__":
    main()
