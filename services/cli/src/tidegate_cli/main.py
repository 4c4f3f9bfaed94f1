"""The program ``tidegate``."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tidegate_cli.command_table import COMMANDS
from tidegate_cli.failures import FAILED, INTERRUPTED, complain
from tidegate_cli.interrupt import interruptible
from tidegate_cli.lazy_group import LazyGroup
from tidegate_cli.session import Session, connection_options


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="`tidegate COMMAND --help` tells more, with examples. Exit codes: 0 done, 1 refused or not found, "
    "2 wrong usage, 3 server not reachable.",
)
@connection_options("The namespace meant.  [env: TIDEGATE_NAMESPACE; default: default]")
@click.pass_context
def cli(
    context: click.Context,
    server: str | None,
    token: str | None,
    data_dir: Path | None,
    user: str | None,
    namespace: str | None,
    ca: Path | None,
    kubeconfig: Path | None,
) -> None:
    """Training jobs, inference services and batch work on one cluster.

    \b
    A first look:
      tidegate up                          start it on this machine
      tidegate apply -f job.yaml           hand in a job
      tidegate get jobs,pods               see how it is doing
      tidegate explain job/ring            ask why it waits
      tidegate logs job/ring -f            read what it writes
    """
    context.obj = Session(server, token, data_dir, user, namespace, ca, kubeconfig)
    if data_dir is not None:
        # The commands that start and stop a system have an option of that name themselves.
        context.default_map = {name: {"data_dir": data_dir} for name in ("up", "down")}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    return run_program(cli, arguments, "tidegate")


def run_program(program: click.Command, arguments: Sequence[str] | None, name: str) -> int:
    """Run ``program`` as ``name``; the result is the exit code. What a user did wrong is a sentence, never a stack trace."""
    try:
        words = None if arguments is None else list(arguments)
        with interruptible():
            result = program.main(args=words, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except Exception as error:
        return _refused(error)


def _refused(error: Exception) -> int:
    """Say what the server, or this computer, said no to; whatever else it is, is a fault of the program and goes on up."""
    from tidegate.client import ClientError

    if isinstance(error, ClientError | OSError):
        complain(str(error))
        return FAILED
    raise error


def _pipe_closed() -> int:
    """Who read the output has seen enough, as `head` does; there is nobody to flush the rest to."""
    sys.stdout = open("/dev/null", "w")  # noqa: SIM115, PTH123 - it stays open until the end
    return FAILED


if __name__ == "__main__":
    sys.exit(run())
