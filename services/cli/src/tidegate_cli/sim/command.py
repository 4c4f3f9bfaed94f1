"""The command line of ``tidegate sim``."""

from pathlib import Path

import click

from testing.scenarios import OpenTarget
from tidegate_cli.sim.runner import SimOptions, simulate


def sim_command(open_target: OpenTarget) -> click.Command:
    """The command, with what its scenarios run against."""

    @click.command("sim")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
    @click.option(
        "--jobs", "-j", default=1, show_default=True, type=click.IntRange(1), help="Processes to run at once."
    )
    @click.option("--json", "as_json", is_flag=True, help="Tell the results as one JSON object.")
    @click.option("--seed", default=0, show_default=True, help="The same seed gives the same run.")
    def sim(paths: tuple[Path, ...], jobs: int, as_json: bool, seed: int) -> None:
        """Run scenario files, and all those in folders, in virtual time.

        Ends with 1 when any of them failed.
        """
        raise SystemExit(simulate(SimOptions(paths, jobs, as_json, seed), open_target, click.echo))

    return sim
