"""``tidegate wait``: until objects are in a state."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kube import Key, Manifest
from tidegate_cli import options
from tidegate_cli.failures import Failure, complain, failed
from tidegate_cli.gathering import Selection, gather
from tidegate_cli.goals import Aim, BadGoal, Goal, parse_goal, phase
from tidegate_cli.lasting_watch import RESTARTED, Scope, lasting_watch
from tidegate_cli.object_words import Wanted, check_selectors, wanted_objects
from tidegate_cli.session import Session, with_session
from tidegate_cli.spans import SECONDS
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.client import Change, SyncClient


class GoalOption(click.ParamType[Goal]):
    """A goal on the command line."""

    name = "goal"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Goal:
        try:
            return value if isinstance(value, Goal) else parse_goal(str(value))
        except BadGoal as error:
            self.fail(str(error), param, ctx)


@click.command()
@options.words
@options.selector
@click.option("--all", "everything", is_flag=True, help="All objects of the kind.")
@click.option("--for", "goal", required=True, type=GoalOption(), metavar="STATE", help="See the examples.")
@click.option("--timeout", type=SECONDS, default="30s", show_default=True, metavar="TIME", help="As 90s or 5m.")
@with_session
def wait(session: Session, words: tuple[str, ...], selector: str, everything: bool, goal: Goal, timeout: float) -> None:
    """Wait until all objects meant are in a state. Ends with 1 when the time is over first, or the state cannot come.

    A phase is met by that phase alone: a job that has Completed was Running, and is not any more.

    \b
    Examples:
      tidegate wait job/ring --for=phase=Running --timeout 2m
      tidegate wait pod/web --for=condition=Ready
      tidegate wait pods -l app=web --for=delete
      tidegate wait job/ring --for='jsonpath={.status.succeeded}=4'
      tidegate wait job/ring --for=create
    """
    wanted = wanted_objects(words)
    check_selectors(selector)
    if not any(one.names for one in wanted) and not (selector or everything):
        raise click.UsageError(f"which {wanted[0].kind.plural}? Name them, or say -l LABELS or --all")
    deadline = time.monotonic() + timeout
    with session.client() as client:
        keys = _keys(client, wanted, Selection(session.namespace, selector), goal)
        late = [key for key in keys if not _reached(client, key, goal, deadline)]
    if late:
        raise failed()


def _keys(client: "SyncClient", wanted: Sequence[Wanted], selection: Selection, goal: Goal) -> list[Key]:
    named = [key for one in wanted for key in one.keys(selection.namespace)]
    if named:
        return named
    found = [
        Key(one.kind.id, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        for one in wanted
        for manifest in gather(client, [one], selection).manifests
    ]
    if not found and goal.aim is not Aim.DELETE:
        raise Failure(f"there are no {', '.join(one.kind.plural for one in wanted)} to wait for")
    return found


def _reached(client: "SyncClient", key: Key, goal: Goal, deadline: float) -> bool:
    """Whether the object came to the goal in time; if it did not, why is said."""
    from tidegate.client import TimedOut

    name = f"{key.kind.lower()}/{key.name}"
    seen: Manifest | None = None
    try:
        for change in lasting_watch(client, Scope(key.kind, key.namespace, key.name), deadline):
            was, seen = seen, _seen(change, seen)
            if change.type == RESTARTED:
                continue
            if goal.is_met(seen):
                say(f"{name} {_words(goal)}")
                return True
            if seen is None and goal.aim is not Aim.CREATE:
                gone = "was deleted before it came to" if was else "is not there to come to"
                complain(f"{name} {gone} {goal}")
                return False
            if seen is not None and goal.is_past(seen):
                complain(f"{name} has ended: it is {phase(seen)} and does not come to {goal} any more")
                return False
    except TimedOut:
        pass
    complain(f"timed out waiting for {goal} of {name}{_state(seen)}")
    return False


def _seen(change: "Change", before: Manifest | None) -> Manifest | None:
    """The object after a change; None when it is not there."""
    if change.type == "bookmark":
        return before
    return None if change.type in ("deleted", RESTARTED) else change.manifest


def _words(goal: Goal) -> str:
    return {Aim.CREATE: "created", Aim.DELETE: "deleted"}.get(goal.aim, "condition met")


def _state(manifest: Manifest | None) -> str:
    if manifest is None:
        return "; it is not there"
    now = phase(manifest)
    return f"; it is {now}" if now else ""
