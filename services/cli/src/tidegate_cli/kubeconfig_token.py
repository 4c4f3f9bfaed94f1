"""By which token the user of a kubeconfig is known to the cluster: from the file, from a file that it names, or from a plug-in."""

import asyncio
from pathlib import Path

import click

from apiserver import NoAccess, load


def token_of(kubeconfig: Path, context: str = "") -> str:
    """The bearer token of the file's ``context``, or of its current one. Raises click.ClickException where there is none."""
    try:
        headers = asyncio.run(_headers(kubeconfig, context))
    except NoAccess as error:
        raise click.ClickException(str(error)) from None
    token = headers.get("Authorization", "").removeprefix("Bearer ")
    if not token:
        raise click.ClickException(
            f"the user of {kubeconfig} has no token: Tidegate knows people by the token that the cluster knows them by; pass one "
            "with --token, for instance that of a service account from `kubectl create token NAME`"
        )
    return token


async def _headers(kubeconfig: Path, context: str) -> dict[str, str]:
    return await (await load(kubeconfig, context)).headers()
