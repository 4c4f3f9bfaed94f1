"""Wiring: settings → view, applier, users, history → gRPC."""

from admission.applier import Applier
from admission.history import History
from admission.rpc import Servicer
from admission.settings import Settings
from admission.users import Users
from admission.view import View
from chassis.process import Context, Parts, run
from tidegate.api.v1 import api_pb2, api_pb2_grpc

DECIDING = ("job_controller", "queue_manager", "gang_scheduler")


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
        # The official client takes half a second to be loaded: only who needs it waits for it.
        from admission.cluster_parts import cluster_parts

        parts = await cluster_parts(settings, view)
        tasks |= parts.tasks
        ready += parts.ready
    return Parts(
        tasks=tasks,
        ready=ready,
        rpc=(lambda server: api_pb2_grpc.add_TidegateServiceServicer_to_server(servicer, server),),
        rpc_names=(api_pb2.DESCRIPTOR.services_by_name["TidegateService"].full_name,),
    )


def main() -> None:
    """Run the service until it is told to stop."""
    run("admission", Settings, build)


if __name__ == "__main__":
    main()
