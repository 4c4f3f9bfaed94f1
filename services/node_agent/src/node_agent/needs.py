"""What a container needs before it can be started, and how it is said that it is not there."""

import asyncio
from collections.abc import Mapping

from kube import Manifest
from kube.environment import secret_names
from node_agent.node import Node

Secrets = Mapping[str, Mapping[str, bytes]]


class NotYet(Exception):
    """Something that the container needs is not there yet; ``again`` says whether time alone may bring it."""

    def __init__(self, reason: str, message: str, again: bool) -> None:
        super().__init__(message)
        self.reason, self.again = reason, again


class NeverPossible(Exception):
    """The container cannot be run on this node, however often it is tried."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def fetch_secrets(node: Node, manifest: Manifest) -> dict[str, Mapping[str, bytes]]:
    """The Secrets that the pod refers to, as far as there are any of these names; raises NotYet when nobody answers."""
    namespace, names = str(manifest["metadata"].get("namespace") or "default"), secret_names(manifest)

    async def fetch(name: str) -> Mapping[str, bytes] | None:
        try:
            return await node.upstream.secret(namespace, name)
        except LookupError:
            return None
        except Exception as error:
            raise NotYet("SecretUnavailable", f"Secret {namespace}/{name}: {error}", again=True) from error

    found = await asyncio.gather(*(fetch(name) for name in names))
    pairs = zip(names, found, strict=True)
    return {f"{namespace}/{name}": values for name, values in pairs if values is not None}
