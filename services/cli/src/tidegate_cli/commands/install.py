"""``tidegate install``: the environments of the programs that run in place of images."""

from pathlib import Path

import click

from node_agent import environments as making
from node_agent.domain.programs import ProgramError
from node_agent.program_list import ProgramList, default_folder, read_list
from tidegate_cli.terminal import say


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--programs",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of programs of your own, the same that the setting node_agent.programs names.",
)
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that they go to, as the setting node_agent.environments  [default: ~/.cache/tidegate/environments]",
)
def install(names: tuple[str, ...], programs: Path | None, environments: Path | None) -> None:
    """Install the environments NAMES, which programs of this machine run in that stand in for images. Without NAMES, list them.

    Packages come from the index that pip is set up for. A pod that waits for one (ProgramNotInstalled) starts by itself.

    \b
    Examples:
      tidegate install
      tidegate install triton kserve storage
    """
    folder = (environments or default_folder()).absolute()
    try:
        found = read_list(programs)
    except ProgramError as error:
        raise click.ClickException(str(error)) from None
    unknown = sorted({*names} - found.environments.keys())
    if unknown:
        known = ", ".join(sorted(found.environments))
        raise click.ClickException(f"there is no environment {', '.join(unknown)}; there are {known}")
    if not names:
        _list(found, folder)
    for name in names:
        try:
            made = making.install(folder / name, found.environments[name])
        except making.InstallFailed as error:
            raise click.ClickException(f"{name}: {error}") from None
        say(f"{name}: {'installed' if made else 'was there already'} in {folder / name}")


def _list(found: ProgramList, folder: Path) -> None:
    for name, environment in sorted(found.environments.items()):
        state = "installed" if making.is_installed(folder / name, environment) else "not installed"
        images = [image for one in found.programs if one.environment == name for image in one.images]
        serves = f", for {', '.join(images)}" if images else ""
        say(f"{name}: {state} ({', '.join(environment.requirements)}){serves}")
