"""The outcomes of a commit of which nothing is carried out."""

from kube import Outcome
from tidegate.codec.decisions import key_of_ref
from tidegate.decision.v1 import decision_pb2


def refused(commit: decision_pb2.Commit, reason: str) -> list[Outcome]:
    """One for each decision that can be made out, though the commit as a whole cannot be read."""
    return [Outcome(item.id, item.name, key_of_ref(item.subject), False, {"": reason}) for item in commit.decisions]
