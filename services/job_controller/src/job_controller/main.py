"""Wiring: settings → core → decider → process."""

from chassis import Decider
from chassis.process import Context, Parts, run
from job_controller.domain.core import JobCore
from job_controller.role import ROLE
from job_controller.settings import Settings


async def build(settings: Settings, context: Context) -> Parts:
    """The parts of the service."""
    decider = Decider(ROLE, JobCore, context.workplace(settings.holder))
    return Parts(tasks={"decider": decider.run()}, ready=(decider.ready,))


def main() -> None:
    """Run the service until it is told to stop."""
    run("job_controller", Settings, build)


if __name__ == "__main__":
    main()
