"""``tidegate completion``: the tab key knows commands, kinds and names."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, kinds and the names of objects.

    \b
    Examples:
      source <(tidegate completion bash)
      tidegate completion zsh > ~/.zfunc/_tidegate
      tidegate completion fish > ~/.config/fish/completions/tidegate.fish
    """
    make = get_completion_class(shell)
    assert make is not None
    click.echo(make(context.find_root().command, {}, "tidegate", "_TIDEGATE_COMPLETE").source())
