"""The decision about a node: what stands in which file, who has to leave, who disturbs whom.

It rests on the rules, the pods, the newest sample and what was kept from the decision before: the same of these give the same
decision. Each file is decided by one module. Most of it does not depend on what is measured, and is handed on from round to round.
"""

from dataclasses import dataclass, field

from node_agent.domain.colocation.bursts import (
    RaisedQuotas,
    any_raised,
    kernel_bursts,
    quotas_by_group,
    raised_quotas,
)
from node_agent.domain.colocation.cpu_pools import CpuPools, cpu_pools, pinnings
from node_agent.domain.colocation.disturbances import Disturbance
from node_agent.domain.colocation.eviction_goals import newest_round, window_ms
from node_agent.domain.colocation.evictions import NOBODY, Asked, wishes
from node_agent.domain.colocation.groups import Knobs, joined
from node_agent.domain.colocation.history import History, grown
from node_agent.domain.colocation.interference import UNDISTURBED, Calm, judged
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.memory_protection import protections
from node_agent.domain.colocation.network import NetworkPlan, class_ids, network_plan
from node_agent.domain.colocation.node_slo import NodeSlo
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.priorities import disk_limits, idle_groups
from node_agent.domain.colocation.quotas import limits_of
from node_agent.domain.colocation.resctrl import Schemata, cache_groups
from node_agent.domain.colocation.situation import Situation
from node_agent.domain.colocation.suppression import FREE, Allowance, Held, allowance, suppressed, tier_files

Grounds = tuple[NodeSlo, Machine, tuple[NodePod, ...]]


@dataclass(frozen=True, slots=True)
class Standing:
    """What follows from its ``grounds`` alone, whatever is measured: it holds until one of them changes."""

    grounds: Grounds
    pools: CpuPools
    bursting: bool
    """Whether some quota may be raised."""
    limits: Knobs
    """As long as none is."""
    files: Knobs
    caches: Schemata
    network: NetworkPlan | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a decision leaves to the next one. Only ``held``, ``raised`` and ``asked`` have to outlive the agent."""

    held: Held = FREE
    raised: RaisedQuotas = field(default_factory=dict)
    asked: Asked = NOBODY
    history: History = ()
    calm: Calm = UNDISTURBED
    untried: Held = FREE
    """What best effort was held to before it was held for the sake of pods that it may disturb."""
    standing: Standing | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Enforcement:
    """One decision."""

    knobs: Knobs
    caches: Schemata
    allowance: Allowance
    kept: Kept
    disturbances: tuple[Disturbance, ...] = ()
    network: NetworkPlan | None = None


def enforce(situation: Situation, kept: Kept) -> Enforcement:
    """What holds on the node from now on."""
    situation = situation.on_its_cores
    slo, machine, pods = situation.slo, situation.machine, situation.pods
    grounds = (slo, machine, tuple(pods.values()))
    standing = kept.standing if kept.standing is not None and kept.standing.grounds == grounds else _standing(grounds)
    calm, disturbances = judged(situation, kept.calm)
    left = allowance(situation)
    allowed = left.milli if calm.held_milli is None else min(left.milli, max(calm.held_milli, _least(situation)))
    history = grown(
        kept.history,
        newest_round(situation, kept.held.limit_milli(machine.cpu_milli)),
        situation.now,
        window_ms(slo.thresholds),
    )
    disturbs = calm.held_milli is not None
    held = suppressed(situation, allowed, standing.pools, _held_before(kept, calm), disturbs)
    raised = raised_quotas(situation, standing.pools, kept.raised) if standing.bursting else {}
    limits = limits_of(slo, machine, pods.values(), quotas_by_group(pods, raised)) if raised else standing.limits
    knobs = joined((tier_files(held, standing.pools, machine), limits, standing.files))
    asked = wishes(situation, history, kept.asked)
    untried = kept.held if kept.calm.held_milli is None else kept.untried
    after = Kept(held, raised, asked, history, calm, untried, standing)
    return Enforcement(knobs, standing.caches, left, after, disturbances, standing.network)


def _standing(grounds: Grounds) -> Standing:
    slo, machine, pods = grounds
    pools = cpu_pools(machine, pods)
    files = joined(
        (
            pinnings(machine, pods, pools),
            kernel_bursts(pods, slo.burst),
            protections(slo, machine, pods),
            idle_groups(slo, pods),
            disk_limits(slo, machine, pods),
            class_ids(slo, machine, pods),
        )
    )
    limits, caches = limits_of(slo, machine, pods, {}), cache_groups(slo, machine, pods)
    network = network_plan(slo, machine, pods)
    return Standing(grounds, pools, any_raised(pods, slo.burst), limits, files, caches, network)


def _held_before(kept: Kept, calm: Calm) -> Held:
    """What is taken for a trial is given back at once; what was measured meanwhile may leave less."""
    let_go = calm.held_milli is None and kept.calm.held_milli is not None
    return kept.untried if let_go else kept.held


def _least(situation: Situation) -> int:
    return situation.machine.cpu_milli * (situation.slo.thresholds.suppress_min_percent or 0) // 100
