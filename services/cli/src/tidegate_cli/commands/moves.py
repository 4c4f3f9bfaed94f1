"""``tidegate moves``: what the descheduler would move in its next round, and why, before it happens."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kube import Manifest, rfc3339
from kube.words import counted, verb
from tidegate_cli.commands.snapshot import FILE, fetched, opened, unpacked
from tidegate_cli.failures import Failure
from tidegate_cli.session import Session, with_session
from tidegate_cli.tables import grid
from tidegate_cli.terminal import say

if TYPE_CHECKING:
    from tidegate.snapshot.v1.snapshot_pb2 import SystemSnapshot


@click.command()
@click.option(
    "--snapshot", "file", type=FILE, default=None, help="Ask this file of `tidegate snapshot`, not the system."
)
@click.option(
    "--policy",
    "policy_file",
    type=FILE,
    default=None,
    help="What it would move by this policy (YAML, as in scenarios), not by its own.",
)
@click.option("--output", "-o", default="text", type=click.Choice(("text", "json")), help="In words, or as data.")
@with_session
def moves(session: Session, file: Path | None, policy_file: Path | None, output: str) -> None:
    """Show which pods the descheduler would move next, where to and why, who stays and why, and how hot the nodes are.

    The service itself answers on a snapshot of the system, in virtual time: nothing moves by it.

    \b
    Examples:
      tidegate moves
      tidegate moves --policy stricter.yaml
      tidegate moves --snapshot monday.tgs -o json
    """
    taken = opened(file) if file is not None else unpacked(fetched(session))
    plan = _plan(taken, _read(policy_file) if policy_file is not None else None)
    say(json.dumps(plan, indent=2, ensure_ascii=False) if output == "json" else "\n".join(plan_lines(plan)))


def plan_lines(plan: Manifest) -> list[str]:
    """A plan for people."""
    count = len(plan["moves"])
    if not plan["nextRound"]:
        return [f"Nobody would move: {plan['idle']}", *(f"  {note}" for note in plan["notes"])]
    when = rfc3339(plan["nextRound"])
    lines = [f"{counted(count, 'pod')} would move at {when}" if count else f"Nobody would move at {when}"]
    for move in plan["moves"]:
        where = f" to {move['to']}" if move["to"] else ""
        uses = f", which uses {_amounts(move['uses'])}" if move["uses"] else ""
        lines.append(f"  {move['namespace']}/{move['pod']} from {move['from']}{where} ({move['strategy']}){uses}")
        lines.append(f"    {move['message']}")
    lines += [f"  {note}" for note in plan["notes"]]
    if plan["stays"]:
        count = len(plan["stays"])
        lines += ["", f"{counted(count, 'pod')} that would have gone {verb(count, 'stays', 'stay')}"]
        lines += [f"  {one['namespace']}/{one['pod']}: {one['message']}" for one in plan["stays"]]
    if plan["nodes"]:
        rows = [
            [one["node"], one["pool"], one["heat"], _amounts(one["used"]), _amounts(one["then"])]
            for one in plan["nodes"]
        ]
        lines += ["", *grid(["NODE", "POOL", "HEAT", "USED", "THEN"], rows)]
    return lines


def _amounts(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def _read(path: Path) -> Manifest:
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise Failure(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise Failure(f"{path} holds no policy: a mapping such as lowThresholds and highThresholds")
    return found


def _plan(taken: "SystemSnapshot", given: Manifest | None) -> Manifest:
    """The plan of the descheduler on a snapshot; by another policy than its own where one is given. Raises Failure."""
    import orjson

    from descheduler.domain.policy.policy import DeschedulerPolicy
    from tidegate import subjects
    from tidegate_cli.whatif.restoring import policy_of, restored

    policy = policy_of(taken)
    if given is not None:
        try:
            policy = replace(policy, moving=DeschedulerPolicy.of(given))
        except (TypeError, ValueError) as error:
            raise Failure(f"the policy cannot be read: {error}") from None
    world = restored(taken, policy)
    try:
        found: Manifest = orjson.loads(world.do(world.bus.request(subjects.question("descheduler", "plan"), b"{}")))
    finally:
        world.close()
    return found
