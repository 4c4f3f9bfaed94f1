"""Wiring: settings → view, applier, users, history → gRPC."""

from dataclasses import dataclass

from admission.applier import Applier
from admission.history import History
from admission.rpc import Servicer
from admission.users import Users
from admission.view import View
from chassis.process import Context, Parts, run
from chassis.settings import ServiceSettings
from tidegate.api.v1 import api_pb2, api_pb2_grpc

DECIDING = ("job_controller", "queue_manager", "gang_scheduler")


@dataclass(frozen=True, slots=True)
class Settings(ServiceSettings):
    """``health_port`` is the address of the API too. Users are read from ``users.yaml`` in the data folder."""


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    history = History(context.bus, DECIDING)
    view = View(context.bus, history.hear)
    applier = Applier(context.bus, view, context.tracer)
    context.measures.watch("revision_seen", "The revision that reads are answered from.", lambda: view.revision)
    users = Users.load(settings.data_dir / "users.yaml")
    servicer = Servicer(context.bus, view, applier, users, history, context.clock)
    following = {f"history of {service}": history.follow(service) for service in DECIDING}
    return Parts(
        tasks={"view": view.run(), "applier": applier.run(), "outcomes": history.follow_outcomes(), **following},
        ready=(view.ready,),
        rpc=(lambda server: api_pb2_grpc.add_TidegateServiceServicer_to_server(servicer, server),),
        rpc_names=(api_pb2.DESCRIPTOR.services_by_name["TidegateService"].full_name,),
    )


def main() -> None:
    """Run the service until it is told to stop."""
    run("admission", Settings, build)


if __name__ == "__main__":
    main()
