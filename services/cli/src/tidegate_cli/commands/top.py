"""``tidegate top``: who asks for how much, and who has it."""

import click

from tidegate_cli import options
from tidegate_cli.consumption import node_lines, pod_lines
from tidegate_cli.failures import Failure
from tidegate_cli.gathering import Selection, gather
from tidegate_cli.object_words import Wanted, check_selectors, wanted_objects
from tidegate_cli.session import Session, with_session
from tidegate_cli.terminal import say


@click.command()
@click.argument("words", nargs=-1, metavar="nodes|pods [NAME]...")
@options.all_namespaces
@options.selector
@with_session
def top(session: Session, words: tuple[str, ...], all_namespaces: bool, selector: str) -> None:
    """Show what the pods on nodes ask for of what the nodes have, or what pods ask for.

    What is used stands in columns of its own where nodes measure it.

    \b
    Examples:
      tidegate top nodes
      tidegate top pods -A
      tidegate top pods -l app=web
    """
    wanted = wanted_objects(words or ("nodes",))
    check_selectors(selector)
    if len(wanted) != 1 or wanted[0].kind.id not in ("Node", "Pod"):
        raise click.UsageError("say nodes or pods")
    selection = Selection("" if all_namespaces else session.namespace, selector)
    say("\n".join(_lines(session, wanted[0], selection, namespaces=all_namespaces)))


def _lines(session: Session, wanted: Wanted, selection: Selection, *, namespaces: bool) -> list[str]:
    with session.client() as client:
        found = gather(client, [wanted], selection)
        metrics = client.list("NodeMetric.slo.koordinator.sh")
        if found.missing or not found.manifests:
            raise Failure("; ".join(found.missing) or f"there are no {wanted.kind.plural}")
        if wanted.kind.id == "Pod":
            return pod_lines(found.manifests, metrics, namespaces=namespaces)
        return node_lines(found.manifests, client.list("Pod", field_selector="spec.nodeName!="), metrics)
