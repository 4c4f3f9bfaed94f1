"""What is written of lending on a node, and when."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from kube import Decision, Manifest, Mutation, Object, Verb, parse_time, rfc3339
from resources import Amounts, QuantityError, format_amounts, parse_amounts
from slo_controller.domain.lending.computing import Computed, compute
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.rule import Rule
from slo_controller.domain.lending.steadiness import Lows, is_worth_writing
from slo_controller.domain.lending.tenants import Tenant
from slo_controller.domain.lending.terms import Use, shown
from slo_controller.domain.lending.zones import are_zoned, unzoned, zoned
from slo_controller.domain.names import LENT, ORIGINAL

LENT_AMOUNTS, STOPPED = "LendingComputed", "LendingStopped"
CONDITION = "ResourcesLent"
"""The condition of a node that says how much of it is lent, how it came to that, and when it was written."""
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Standing:
    """How a node stands at one moment: what may be lent of it, or the ``reason`` why nothing is, in ``words``.

    It stands differently from ``looked_at`` on, though nothing changes.
    """

    node: Object
    rule: Rule
    looked_at: int = NEVER
    computed: Computed | None = None
    reason: str = ""
    words: str = ""
    topology: Object | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What came of looking at a node: what is to be written, and when it has to be looked at again though nothing changes."""

    decision: Decision | None = None
    again_at: int = NEVER


def stand(
    node: Object,
    rule: Rule,
    seen: Measured | None,
    tenants: Collection[Tenant],
    predicted: Use,
    now: int,
    topology: Object | None = None,
) -> Standing:
    """How ``node`` stands by ``rule``, with what was ``seen`` of it last."""
    nothing = partial(Standing, node, rule, topology=topology)
    if not rule.enabled:
        return nothing(reason="ColocationOff", words="co-location is not enabled on this node")
    if seen is None:
        return nothing(reason="NothingMeasured", words="there is no NodeMetric of this node")
    if now - seen.at > rule.degrade_ms:
        words = f"what was measured last, at {rfc3339(seen.at)}, is older than {rule.degrade_ms // 60_000} minutes"
        return nothing(reason="MetricsStale", words=words)
    if seen.at - now > rule.degrade_ms:
        words = f"what was measured last claims to be of {rfc3339(seen.at)}: the clock of the node is wrong"
        return nothing(seen.at - rule.degrade_ms, reason="MetricsFromLater", words=words)
    computed = compute(node, rule, seen, tenants, predicted, topology)
    return Standing(node, rule, seen.at + rule.degrade_ms + 1, computed, topology=topology)


def look(standing: Standing, lows: Lows, now: int) -> Look:
    """What is to be written of a node now. What it has of somebody else stays where nothing is lent of it."""
    computed, node, rule = standing.computed, standing.node, standing.rule
    if computed is None:
        said = condition(node)
        stopped = _stop(standing, now) if said is not None and said.get("status") == "True" else None
        return Look(stopped, standing.looked_at)
    present = lent_now(node)
    wanted = lows.steady(node.name, computed.amounts, present)
    marked = (ORIGINAL in node.annotations) == bool(computed.before) and _is_zoned(standing)
    if present == wanted and marked:
        return Look(None, standing.looked_at)
    at_once = not marked or is_worth_writing(present, wanted, rule.difference_milli)
    due = now if at_once else _written_at(node) + rule.refresh_ms
    return (
        Look(_lend(standing, computed, wanted, now), standing.looked_at)
        if due <= now
        else Look(None, min(due, standing.looked_at))
    )


def lent_now(node: Object) -> Amounts:
    """What of the node is lent at present, as everybody reads it."""
    listed = node.status.get("allocatable") or {}
    try:
        return parse_amounts({name: listed[name] for name in LENT if name in listed})
    except QuantityError:
        return {}


def condition(node: Object) -> Manifest | None:
    """What was said last of lending on the node."""
    return next((one for one in node.status.get("conditions") or () if one.get("type") == CONDITION), None)


def _written_at(node: Object) -> int:
    """When amounts were written last, in ms; long ago where they never were."""
    try:
        return parse_time(str((condition(node) or {})["lastHeartbeatTime"]))
    except (KeyError, ValueError):
        return -NEVER


def _is_zoned(standing: Standing) -> bool:
    """Whether the zones of a node tell batch resources, where there are any."""
    computed, topology = standing.computed, standing.topology
    return computed is None or topology is None or are_zoned(topology) == bool(computed.zones)


def _lend(standing: Standing, computed: Computed, wanted: Amounts, now: int) -> Decision:
    node, amounts = standing.node, format_amounts(wanted)
    words = "; ".join(
        one.explained() + _held_back(one.amount, wanted[one.resource], one.resource) for one in computed.lent
    )
    told = _told(node, "True", "Computed", "; ".join([words, *computed.complaints]), now)
    patch = {"capacity": amounts, "allocatable": amounts, "conditions": [told]}
    mutations = [Mutation(Verb.STATUS, node.key, node.uid, patch=patch)]
    mutations += [*_marks(node, computed), *_zones(standing, computed.zones, wanted)]
    return Decision(LENT_AMOUNTS, node.key, node.uid, "Computed", words, tuple(mutations))


def _zones(standing: Standing, amounts: Mapping[int, Amounts], wanted: Amounts) -> Iterator[Mutation]:
    """What the zones of a node are to tell."""
    topology = standing.topology
    if topology is not None and (amounts or are_zoned(topology)):
        listed = topology.body.get("zones") or []
        zones = zoned(listed, amounts, wanted) if amounts else unzoned(listed)
        if zones != listed:
            yield Mutation(Verb.PATCH, topology.key, topology.uid, patch={"zones": zones})


def _held_back(amount: int, written: int, resource: str) -> str:
    return "" if amount == written else f", of which {shown(resource, written)} until it has lasted"


def _marks(node: Object, computed: Computed) -> list[Mutation]:
    """What the node would lend if others had been given nothing, for whoever gives them more."""
    there = node.annotations.get(ORIGINAL)
    text = _original(computed.before) if computed.before else None
    if there == text:
        return []
    return [Mutation(Verb.PATCH, node.key, node.uid, patch={"metadata": {"annotations": {ORIGINAL: text}}})]


def _original(before: Amounts) -> str:
    return json.dumps({"resources": format_amounts(before)}, sort_keys=True, separators=(",", ":"))


def _stop(standing: Standing, now: int) -> Decision:
    """Take back what was written here."""
    node, words = standing.node, f"nothing is lent: {standing.words}"
    nothing = dict.fromkeys(LENT)
    told = _told(node, "False", standing.reason, words, now)
    mutations = [
        Mutation(
            Verb.STATUS, node.key, node.uid, patch={"capacity": nothing, "allocatable": nothing, "conditions": [told]}
        )
    ]
    if ORIGINAL in node.annotations:
        mutations.append(
            Mutation(Verb.PATCH, node.key, node.uid, patch={"metadata": {"annotations": {ORIGINAL: None}}})
        )
    mutations += _zones(standing, {}, {})
    return Decision(STOPPED, node.key, node.uid, standing.reason, words, tuple(mutations))


def _told(node: Object, status: str, reason: str, words: str, now: int) -> Manifest:
    before = condition(node)
    since = before["lastTransitionTime"] if before and before.get("status") == status else rfc3339(now)
    return {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": words,
        "lastHeartbeatTime": rfc3339(now),
        "lastTransitionTime": since,
    }
