"""``tidegate recommend``: write into a workload what a Recommendation says of its containers."""

from collections.abc import Iterator
from typing import Any

import click

from kube import Manifest, UnknownKind, find_kind
from resources import QuantityError, parse_amounts
from resources.amounts import format_amount
from tidegate_cli import options
from tidegate_cli.cells import dig
from tidegate_cli.failures import Failure
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say

RECOMMENDATION = "Recommendation.analysis.koordinator.sh"


@click.command()
@click.argument("name", metavar="RECOMMENDATION")
@options.dry_run
@with_session
def recommend(session: Session, name: str, dry_run: bool) -> None:
    """Write into a workload what a Recommendation says that its containers should ask for.

    Nobody does that by himself: the workload is changed as you, and starts new pods as after any other change. Limits grow and
    shrink with the requests. `tidegate get recommendations` lists what is recommended.

    \b
    Examples:
      tidegate recommend web --dry-run
      tidegate recommend web
    """
    with session.client() as client:
        item = client.get(RECOMMENDATION, name, session.namespace)
        told = {str(one.get("containerName")): one for one in dig(item, "status.podStatus.containerStatuses") or ()}
        if not told:
            raise Failure(f"recommendation/{name} says nothing yet: {dig(item, 'status.conditions[0].message') or ''}")
        kind, workload = _workload(item, name)
        there = client.get(kind, workload, session.namespace)
        changes = list(_changes(there, told))
        if not changes:
            say(f"{workload} asks for what is recommended already")
            return
        result = client.patch(kind, workload, _operations(changes), session.namespace, dry_run=dry_run)
    if result.refused:
        raise Failure("; ".join(map(str, result.errors)) or result.message)
    for _, container, words, _ in changes:
        say(f"{workload}: {container} {words}{' (dry run)' if dry_run else ''}")


Change = tuple[int, str, str, Manifest]
"""A container's place and name, what changes in words, and the resources that it gets."""


def _workload(item: Manifest, name: str) -> tuple[str, str]:
    named: Manifest = dig(item, "spec.target.workload") or {}
    if not named:
        raise Failure(f"recommendation/{name} is about pods by their labels: there is no workload to write it into")
    group = str(named.get("apiVersion") or "").rpartition("/")[0]
    word = f"{named.get('kind')}.{group}" if group else str(named.get("kind"))
    try:
        return find_kind(word).id, str(named.get("name"))
    except UnknownKind as error:
        raise Failure(f"recommendation/{name}: {error}") from None


def _changes(workload: Manifest, told: dict[str, Manifest]) -> Iterator[Change]:
    for at, container in enumerate(dig(workload, "spec.template.spec.containers") or ()):
        one = told.get(str(container.get("name")))
        if one is None:
            continue
        before: Manifest = container.get("resources") or {}
        after = _resources(before, one["resources"])
        if after != before:
            old, new = before.get("requests") or {}, after["requests"]
            words = ", ".join(f"{name} {old.get(name, 'none')} → {new[name]}" for name in one["resources"])
            yield at, str(container.get("name")), words, after


def _resources(before: Manifest, recommended: Manifest) -> Manifest:
    """The resources with the recommended requests; a limit keeps its proportion to the request that it had."""
    requests = {**(before.get("requests") or {}), **recommended}
    limits = dict(before.get("limits") or {})
    for name, amount in recommended.items():
        if name in limits:
            limits[name] = _scaled(name, limits[name], (before.get("requests") or {}).get(name, limits[name]), amount)
    return {**before, "requests": requests, **({"limits": limits} if limits else {})}


def _scaled(name: str, limit: Any, old: Any, new: Any) -> Any:
    try:
        most, before, after = (parse_amounts({name: amount})[name] for amount in (limit, old, new))
    except QuantityError:
        return limit
    return format_amount(name, most * after // before) if before else limit


def _operations(changes: list[Change]) -> list[Manifest]:
    """A JSON patch that holds only while each container is still at its place."""
    operations: list[Manifest] = []
    for at, container, _, resources in changes:
        path = f"/spec/template/spec/containers/{at}"
        operations.append({"op": "test", "path": f"{path}/name", "value": container})
        operations.append({"op": "add", "path": f"{path}/resources", "value": resources})
    return operations
