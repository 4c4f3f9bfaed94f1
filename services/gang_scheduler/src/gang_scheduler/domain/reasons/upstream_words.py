"""Reasons in the words of kube-scheduler and Volcano, which tools and people of the field look for.

kube-scheduler says ``0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint {team: ml}.`` It leaves
out how much is needed and how much there is, so our own words follow each of its reasons in parentheses.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from kube.devices import MIG_RESOURCE

_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_WORDS = (
    (r"are cordoned", "node(s) were unschedulable"),
    (r"are not ready", "node(s) had untolerated taint {node.kubernetes.io/not-ready: }"),
    (r"lack the label .*", _AFFINITY),
    (r"do not match the node affinity .*", _AFFINITY),
    (r"have no free host port .*", "node(s) didn't have free ports for the requested pod ports"),
    (r"have no pod with .*", "node(s) didn't match pod affinity rules"),
    (r"have a pod with .*", "node(s) didn't match pod anti-affinity rules"),
    (r"have a pod in their .*", "node(s) didn't satisfy existing pods anti-affinity rules"),
    (r"would make the skew .*", "node(s) didn't match pod topology spread constraints"),
    (r"have too little pods .*", "Too many pods"),
    (r"have too few cards .*", "Insufficient gpu devices"),
    (r"have too few CPUs .*", "Insufficient cpu"),
    (r"have no .*NUMA node.*", "node(s) NUMA Topology affinity error"),
)
_TAINT = re.compile(r"have the taint ([^=:]+)(?:=([^:]*))?:\w+")
_SHORT = re.compile(r"have too little (\S+) \((.*)\)")
_SPLIT = re.compile(r"have no place on a card for the MIG profile (\S+) \((.*)\)")


@lru_cache(maxsize=4096)
def reason(phrase: str) -> str:
    """kube-scheduler's word for nodes of which we say ``phrase``; what it has no word for is ``node(s) `` and ours."""
    for pattern, words in _WORDS:
        if re.fullmatch(pattern, phrase):
            return words
    taint, short = _TAINT.fullmatch(phrase), _SHORT.fullmatch(phrase)
    if taint:
        return f"node(s) had untolerated taint {{{taint[1]}: {taint[2] or ''}}}"
    if split := _SPLIT.fullmatch(phrase):
        return f"Insufficient {MIG_RESOURCE}{split[1]}"
    return f"Insufficient {short[1]}" if short else f"node(s) {phrase}"


def available(fitting: int, nodes: int, filters: Iterable[tuple[str, int]]) -> str:
    """kube-scheduler's sentence on a pod. ``filters``: how many nodes each of our phrases is true of."""
    if not nodes:
        return "0/0 nodes are available: no nodes available to schedule pods."
    groups: dict[str, list[tuple[str, int]]] = {}
    for phrase, count in filters:
        groups.setdefault(reason(phrase), []).append((phrase, count))
    parts = [_part(words, found) for words, found in groups.items()]
    return f"{fitting}/{nodes} nodes are available" + (f": {', '.join(parts)}." if parts else ".")


def in_gang(unready: int, members: int, standings: Iterable[tuple[str, int]], least: int, fitting: int) -> str:
    """Volcano's sentence on a gang: ``unready`` of ``members`` are missing to its minimum ``least``; ``fitting`` would fit."""
    known = [(name, count) for name, count in standings if count]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(known))
    pending = dict(known).get("Pending", 0)
    able = min(fitting, pending)
    detail = [f"{pending - able} Unschedulable"] + ([f"{able} Schedulable"] if able else [])
    text = f"{unready}/{members} tasks in gang unschedulable: pod group is not ready, {counts}, {least} minAvailable"
    return text + (f"; Pending: {', '.join(detail)}" if pending else "")


def _part(words: str, found: list[tuple[str, int]]) -> str:
    total = sum(count for _, count in found)
    own = [_own(phrase) for phrase, _ in found]
    if len(found) > 1:
        own = [f"{count} {text}" for text, (_, count) in zip(own, found, strict=True)]
    told = "; ".join(text for text in own if text)
    return f"{total} {words}" + (f" ({told})" if told else "")


def _own(phrase: str) -> str:
    """What our phrase adds to kube-scheduler's."""
    short = _SHORT.fullmatch(phrase)
    if short:
        return short[2]
    if split := _SPLIT.fullmatch(phrase):
        return f"no place on a card: {split[2]}"
    if reason(phrase).endswith(phrase):
        return ""
    for verb in ("have the taint ", "have ", "are "):
        phrase = phrase.removeprefix(verb)
    # What says so in parentheses already would stand in two pairs of them.
    return phrase.removesuffix(")").replace(" (", ": ") if phrase.endswith(")") else phrase
