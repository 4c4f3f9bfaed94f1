"""What a shell offers when the tab key is pressed: kinds, and the names of objects that the server has."""

from typing import Any

import click
from click.shell_completion import CompletionItem


def complete_objects(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Kinds first, then names of that kind. Without a server there are no names, and no complaint."""
    given = [word for word in context.params.get("words") or () if isinstance(word, str)]
    kind, slash, prefix = incomplete.partition("/")
    if slash:
        return [CompletionItem(f"{kind}/{name}") for name in _names(context, kind) if name.startswith(prefix)]
    if given and "/" not in given[0]:
        return [CompletionItem(name) for name in _names(context, given[0]) if name.startswith(incomplete)]
    return [CompletionItem(word) for word in _kind_words() if word.startswith(incomplete)]


def _kind_words() -> list[str]:
    from kube import KINDS

    return sorted({info.plural for info in KINDS.values()} | {"all"})


def _names(context: click.Context, word: str) -> list[str]:
    from kube import UnknownKind, find_kind
    from tidegate.client import ClientError, SyncClient, find_endpoint

    given: dict[str, Any] = {**(context.parent.params if context.parent else {}), **_present(context.params)}
    try:
        info = find_kind(word)
        known = (given.get("server"), given.get("token"), given.get("data_dir"), given.get("user"))
        endpoint = find_endpoint(*known, ca=given.get("ca"))
        with SyncClient(endpoint, timeout_seconds=2.0) as client:
            namespace = given.get("namespace") or "default"
            listed = client.list(info.id, namespace if info.namespaced else "")
    except (ClientError, UnknownKind):
        return []
    return [str(one["metadata"]["name"]) for one in listed]


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
