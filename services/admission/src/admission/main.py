"""Wiring: settings → view, applier, users, history → gRPC."""

from collections.abc import Sequence

from admission.applier import Applier
from admission.callers import Callers
from admission.door import Door
from admission.history import History
from admission.rpc import Servicer
from admission.settings import Settings
from admission.users import Users
from admission.view import View
from chassis.process import Context, Parts, run
from chassis.rpc_server import Add
from tidegate.api.v1 import api_pb2, api_pb2_grpc
from tidegate.services import DECIDERS

NAMES = (api_pb2.DESCRIPTOR.services_by_name["TidegateService"].full_name,)


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    if unknown := {*settings.access} - {"users", "cluster"}:
        raise SystemExit(f"access: {', '.join(sorted(unknown))}: there are users and cluster")
    history = History(context.bus, DECIDERS)
    view = View(context.bus, history.hear)
    applier = Applier(context.bus, view, context.tracer)
    context.measures.watch("revision_seen", "The revision that reads are answered from.", lambda: view.revision)
    by_file = settings.data_dir / "users.yaml"
    users = Users.load(by_file, settings.admin_token) if "users" in settings.access else None
    following = {f"history of {service}": history.follow(service) for service in DECIDERS}
    tasks = {"view": view.run(), "applier": applier.run(), "outcomes": history.follow_outcomes(), **following}
    parts = Parts(tasks=tasks, ready=[view.ready])

    def api(cluster: Callers | None) -> tuple[Sequence[Add], Sequence[str]]:
        servicer = Servicer(context.bus, view, applier, Door(users, cluster), history, context.clock)
        return (lambda server: api_pb2_grpc.add_TidegateServiceServicer_to_server(servicer, server),), NAMES

    if settings.uses_cluster:
        # The official client takes half a second to be loaded: only who needs it waits for it.
        from admission.cluster_parts import add_cluster_parts

        await add_cluster_parts(parts, settings, context, view, api)
    else:
        parts.rpc, parts.rpc_names = api(None)
    return parts


def main() -> None:
    """Run the service until it is told to stop."""
    run("admission", Settings, build)


if __name__ == "__main__":
    main()
