"""How a command fails: with a sentence for a person, and an exit code for a script."""

import click

FAILED, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130


class Failure(click.ClickException):
    """What was asked was refused, failed, or is not there."""

    exit_code = FAILED


class Unreachable(click.ClickException):
    """The server does not answer."""

    exit_code = UNREACHABLE


def complain(text: str) -> None:
    """Say on standard error what went wrong, while there is more to do."""
    click.echo(f"{click.style('Error:', fg='red')} {text}", err=True)


def failed() -> click.exceptions.Exit:
    """To raise when everything has been said."""
    return click.exceptions.Exit(FAILED)
