"""Going beyond a limit for a while: what the kernel saves up (``cpu.max.burst``), and quotas that are raised.

The kernel lets a group save up unused quota, up to one quota: it refuses more. A quota is raised by a fifth whenever its
container meets it, while the CPUs that online pods share have room; it goes back when they have none, or when it was not met
for a while.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from node_agent.domain.colocation.cpu_pools import CpuPools
from node_agent.domain.colocation.groups import CPU_BURST, Group
from node_agent.domain.colocation.node_slo import NO_RULES, Burst, Qos, burst_of
from node_agent.domain.colocation.pods import CPU_BURST as CPU_BURST_WORD
from node_agent.domain.colocation.pods import ContainerNeed, NodePod
from node_agent.domain.colocation.situation import Situation
from node_agent.domain.limits import PERIOD_US

RAISE, LOWER = (6, 5), (4, 5)
COOLING = (9, 10)
CALM_MS = 60_000
"""After so long without meeting its quota a container needs no raised one."""
FIRST_TOKENS_PERCENT = 25
REFILL_BELOW_PERCENT = 60


class Room(Enum):
    """Whether the shared CPUs have room for quotas to be raised."""

    IDLE = "idle"
    COOLING = "cooling"
    OVERLOADED = "overloaded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Raised:
    """One container's quota, and since when it has not met it. ``tokens`` are what it may still use beyond its limit, in
    percent of the limit times milliseconds; they count only where the rules name a period.
    """

    quota_us: int
    met_at: int
    tokens: int = 0
    at: int = 0


RaisedQuotas = Mapping[tuple[str, str], Raised]


def burst_rules(pod: NodePod, node: Burst) -> Burst:
    """What holds for a pod: its own word before the node's; nothing for best effort, and for pods with CPUs of their own."""
    if not pod.online or _has_own(pod):
        return NO_RULES.burst
    word = pod.word(CPU_BURST_WORD)
    return burst_of(word, node) if word else node


def _has_own(pod: NodePod) -> bool:
    """Whether a pod has CPUs of its own, or is to have them."""
    return pod.pinned or (pod.qos in (Qos.LSE, Qos.LSR) and pod.declared)


def any_raised(pods: Iterable[NodePod], node: Burst) -> bool:
    """Whether the quota of some pod may be raised, by the node's rules or by its own word: then time matters."""
    return node.by_quota or any(burst_rules(pod, node).by_quota for pod in pods if pod.word(CPU_BURST_WORD))


def kernel_bursts(pods: Iterable[NodePod], node: Burst) -> dict[Group, dict[str, str]]:
    """``cpu.max.burst`` of LS pods and containers where the policy wants it; 0 where there is no limit to save up below."""
    found: dict[Group, dict[str, str]] = {}
    for pod in pods:
        rules = burst_rules(pod, node)
        if not rules.by_kernel:
            continue
        amounts = {one.name: _saved_us(one, rules) for one in pod.containers}
        whole = sum(amounts.values()) if pod.limits.quota_us is not None else 0
        found[pod.group] = {CPU_BURST: str(min(whole, pod.limits.quota_us or 0))}
        found |= {pod.group.of(name): {CPU_BURST: str(amount)} for name, amount in amounts.items()}
    return found


def raised_quotas(situation: Situation, pools: CpuPools, before: RaisedQuotas) -> RaisedQuotas:
    """The quotas of containers that may go beyond their limit, from what they were ``before``."""
    found: dict[tuple[str, str], Raised] = {}
    used, milli = _shared_use(situation), _shared_milli(situation, pools)
    for pod in situation.pods.values():
        rules = burst_rules(pod, situation.slo.burst)
        if not rules.by_quota:
            continue
        room = _room(used, milli, rules)
        for one in pod.containers:
            base = one.limits.quota_us
            if base is not None:
                known = before.get((pod.uid, one.name)) or _begun(base, rules, situation.now)
                if known.met_at > situation.now:  # by a clock that was set back while no agent ran
                    known = replace(known, met_at=situation.now, at=situation.now)
                found[pod.uid, one.name] = _next(pod, one.name, base, known, rules, room, situation)
    return found


def quotas_by_group(pods: Mapping[str, NodePod], raised: RaisedQuotas) -> dict[Group, int]:
    """The raised quotas of containers, and of pods: what their containers have together."""
    found: dict[Group, int] = {}
    for pod in pods.values():
        own = {one.name: raised[pod.uid, one.name].quota_us for one in pod.containers if (pod.uid, one.name) in raised}
        found |= {pod.group.of(name): quota for name, quota in own.items()}
        if own and pod.limits.quota_us is not None:
            bases = sum(one.limits.quota_us or 0 for one in pod.containers if one.name in own)
            found[pod.group] = pod.limits.quota_us - bases + sum(own.values())
    return found


def _saved_us(container: ContainerNeed, rules: Burst) -> int:
    limit, quota = container.limits.cpu_milli, container.limits.quota_us
    if limit is None or quota is None:
        return 0
    return max(0, min(quota, limit * rules.kernel_percent // 100 * PERIOD_US // 1000))


def _shared_use(situation: Situation) -> int | None:
    """What of the node is used by others than best effort and pods with CPUs of their own; None where nothing fresh was measured."""
    sample = situation.fresh
    if sample is None:
        return None
    others = [pod for pod in situation.pods.values() if not pod.online or _has_own(pod)]
    return sample.node.cpu_milli - situation.used(others)


def _shared_milli(situation: Situation, pools: CpuPools) -> int:
    """What online pods share: all CPUs but those of pods with their own, whichever these will be."""
    waiting = [pod for pod in situation.pods.values() if pod.online and _has_own(pod) and not pod.pinned]
    return len(pools.shared) * 1000 - sum(pod.requests.get("cpu", 0) for pod in waiting)


def _room(used: int | None, milli: int, rules: Burst) -> Room:
    if used is None or milli <= 0:
        return Room.UNKNOWN
    limit = milli * rules.share_pool_percent // 100
    if used >= limit:
        return Room.OVERLOADED
    return Room.COOLING if used * COOLING[1] >= limit * COOLING[0] else Room.IDLE


def _begun(base: int, rules: Burst, now: int) -> Raised:
    capacity = _capacity(rules)
    return Raised(base, now, capacity * FIRST_TOKENS_PERCENT // 100, now)


def _next(pod: NodePod, name: str, base: int, known: Raised, rules: Burst, room: Room, situation: Situation) -> Raised:
    sample, now = situation.fresh, situation.now
    met = sample is not None and (pod.uid, name) in sample.throttled
    known = _refilled(known, pod, rules, situation)
    if met:
        known = replace(known, met_at=now)
    quota, (up, of_up), (down, of_down) = known.quota_us, RAISE, LOWER
    spent = rules.period_seconds > 0 and known.tokens <= 0
    if spent:
        quota = base
    elif room is Room.OVERLOADED or now - known.met_at >= CALM_MS:
        quota = quota * down // of_down
    elif met and room is Room.IDLE:
        quota = quota * up // of_up
    if quota < known.quota_us and now - known.met_at >= CALM_MS:
        known = replace(known, met_at=now)  # one step down for each calm while
    quota = max(base, min(quota, base * max(rules.quota_percent, 100) // 100))
    return known if quota == known.quota_us else replace(known, quota_us=quota)


def _refilled(known: Raised, pod: NodePod, rules: Burst, situation: Situation) -> Raised:
    """With the tokens that were used or saved since the last round."""
    sample, limit = situation.fresh, pod.limits.cpu_milli
    if rules.period_seconds <= 0:
        return known
    passed = max(0, situation.now - known.at)
    if sample is None or not limit:
        return replace(known, at=situation.now)
    percent = sample.of(pod.uid).cpu_milli * 100 // limit
    change = 100 - percent if percent >= 100 or percent < REFILL_BELOW_PERCENT else 0
    tokens = max(0, min(_capacity(rules), known.tokens + change * passed))
    return replace(known, tokens=tokens, at=situation.now)


def _capacity(rules: Burst) -> int:
    return max(0, rules.period_seconds) * 1000 * max(0, rules.quota_percent - 100)
