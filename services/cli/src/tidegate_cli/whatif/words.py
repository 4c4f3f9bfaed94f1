"""Answers of ``tidegate whatif`` and ``tidegate replay`` in words."""

from collections.abc import Iterator, Sequence

from chassis.remaking import Remade
from kube import rfc3339
from tidegate_cli.whatif.question import Answer

NAMED = 8
_VERDICTS = {
    "now": "would start now",
    "later": "would start later",
    "waits": "would wait",
    "runs": "runs already",
    "missing": "is not there",
    "applied": "would be taken in; it runs nothing",
    "refused": "would be refused",
}


def answer_lines(answer: Answer, now: int) -> Iterator[str]:
    """One document."""
    at = f", at {rfc3339(answer.at_ms)}" if answer.at_ms is not None and answer.verdict == "later" else ""
    yield f"{answer.name}: {_VERDICTS[answer.verdict]}{at}"
    for warning in answer.warnings:
        yield f"  warning: {warning}"
    nodes: dict[str, list[str]] = {}
    for pod, node in answer.placements:
        nodes.setdefault(node, []).append(pod)
    for node, pods in sorted(nodes.items()):
        yield f"  on {node}: {_some(pods)}"
    for one in answer.evictions:
        yield f"  evicts {one['pod']} ({one['reason']})"
    if answer.verdict in ("waits", "later", "refused"):
        yield from (f"  {line}" for line in answer.lines)


def remade_lines(remade: Remade) -> Iterator[str]:
    """A commit that was made again."""
    when = f"on revision {remade.decided_on} at {rfc3339(remade.now_ms)}"
    for one in remade.compared:
        about = f"{one.made.subject.kind.partition('.')[0].lower()}/{one.made.subject.name}"
        verdict = "the same bytes" if one.same else "not made again" if one.remade is None else "other bytes"
        yield f"{one.decision_id}: {one.made.name} of {about}, {when}: {verdict}"
        if not one.same:
            yield f"  made:  {one.made.message}"
            yield f"  again: {one.remade.message if one.remade is not None else 'nothing'}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
