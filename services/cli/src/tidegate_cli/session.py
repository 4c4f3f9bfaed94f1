"""Where a command's server is, and whose namespace it means: from the options before and behind the command's name."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate_cli.failures import Unreachable

if TYPE_CHECKING:
    from tidegate.client import SyncClient

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Session:
    """What was said of server and user; the rest is found when a command connects."""

    server: str | None = None
    token: str | None = None
    data_dir: Path | None = None
    user: str | None = None
    given_namespace: str | None = None
    ca: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""

    @property
    def namespace(self) -> str:
        """The namespace that commands mean when they name none."""
        return self.given_namespace or os.environ.get("TIDEGATE_NAMESPACE") or "default"

    @contextmanager
    def client(self) -> "Iterator[SyncClient]":
        """A connected client. Raises Unreachable when the server does not answer, in here and inside the ``with``."""
        # gRPC's own remarks on standard error help nobody.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from tidegate.client import NoServer, SyncClient, TimedOut, Unavailable, find_endpoint

        try:
            endpoint = find_endpoint(self.server, self._token(), self.data_dir, self.user, ca=self.ca)
            with SyncClient(endpoint) as client:
                yield client
        except NoServer as error:
            raise Unreachable(str(error)) from None
        except (Unavailable, TimedOut) as error:
            raise Unreachable(f"{error}{_advice(str(error))}") from None

    def _token(self) -> str | None:
        """What was said, or the token by which the kubeconfig's user is known to the cluster."""
        if self.kubeconfig is None or self.token:
            return self.token
        from tidegate_cli.kubeconfig_token import token_of

        return token_of(self.kubeconfig, self.context)


def _advice(text: str) -> str:
    return "; is Tidegate running? `tidegate up` starts it" if text.startswith("no Tidegate answers") else ""


_OPTIONS = (
    click.option("--server", metavar="HOST:PORT", help="Where Tidegate is.  [env: TIDEGATE_SERVER]"),
    click.option("--token", metavar="TOKEN", help="Who is asking.  [env: TIDEGATE_TOKEN]"),
    click.option(
        "--data-dir",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="The data folder of a running Tidegate.  [env: TIDEGATE_DATA_DIR; else ./.tidegate or a parent's]",
    ),
    click.option("--as", "user", metavar="NAME", help="Ask as this user of the data folder's users.yaml."),
    click.option(
        "--ca",
        metavar="FILE",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Talk over TLS to a server that this certificate vouches for.  [env: TIDEGATE_CA]",
    ),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Ask as the user of this kubeconfig's current context, whom the cluster knows by a token.",
    ),
)


def connection_options(namespace_help: str) -> Callable[[F], F]:
    """The options of the whole program, as the outermost command has them."""

    def decorate(function: F) -> F:
        decorated: Any = click.option("--namespace", "-n", metavar="NAME", help=namespace_help)(function)
        for option in reversed(_OPTIONS):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


_FILES = (("--ca", Path), ("--kubeconfig", Path))


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Hands a command its session first; the program's options may stand behind the command's name, too."""

    @click.pass_context
    @functools.wraps(function)
    def wrapped(
        context: click.Context,
        /,
        *arguments: Any,
        server: str | None,
        token: str | None,
        data_dir: Path | None,
        user: str | None,
        namespace: str | None,
        ca: Path | None,
        kubeconfig: Path | None,
        **options: Any,
    ) -> None:
        outer = context.find_object(Session) or Session()
        session = Session(
            server or outer.server,
            token or outer.token,
            data_dir or outer.data_dir,
            user or outer.user,
            namespace or outer.given_namespace,
            ca or outer.ca,
            kubeconfig or outer.kubeconfig,
            outer.context,
        )
        function(session, *arguments, **options)

    decorated: Callable[..., None] = click.option("--namespace", "-n", metavar="NAME", help="The namespace meant.")(
        wrapped
    )
    for name, kind in (("--server", str), ("--token", str), ("--data-dir", Path), ("--as", str), *_FILES):
        decorated = _hidden(name, kind)(decorated)
    return decorated


def _hidden(name: str, kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    variable = "user" if name == "--as" else name.removeprefix("--").replace("-", "_")
    shape = click.Path(path_type=Path) if kind is Path else str
    return click.option(name, variable, type=shape, hidden=True)
