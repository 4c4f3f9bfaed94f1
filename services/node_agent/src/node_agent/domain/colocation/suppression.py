"""How much CPU best effort may have now, and how it is held to that.

    allowance = capacity × threshold - what online pods and programs use - max(what the rest of the node uses, what is reserved)

It shrinks at once and grows slowly. Where nothing fresh was measured, online pods are taken to use what they ask for, and
nothing grows.
"""

from dataclasses import dataclass

from kube.cpu_lists import format_cpus
from node_agent.domain.colocation.cpu_choice import choose_cpus
from node_agent.domain.colocation.cpu_pools import CpuPools
from node_agent.domain.colocation.groups import CPU_MAX, CPU_SET, Group, Tier
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.node_slo import BY_QUOTA, Qos, SuppressPolicy
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.quotas import cpu_max
from node_agent.domain.colocation.samples import Sample
from node_agent.domain.colocation.situation import Situation
from node_agent.domain.limits import PERIOD_US

BEST_EFFORT = Group(Tier.BEST_EFFORT)
LEAST_QUOTA_US = 2_000
LEAST_CPUS = 2
STEP_PERCENT = 10
"""Of the node: the most that best effort gains in one round."""
DEAD_PERCENT = 1
"""Of the node: a smaller change of the quota is not worth a write."""
DEAD_MILLI = 100
"""A CPU more is given only when this much of it is there: else it would come and go with every sample."""


@dataclass(frozen=True, slots=True)
class Held:
    """What best effort is held to: a quota (milli-cores), CPUs, or neither."""

    quota_milli: int | None = None
    cpus: tuple[int, ...] = ()

    def limit_milli(self, all_milli: int) -> int:
        """What it may use, of ``all_milli`` that the node has."""
        if self.quota_milli is not None:
            return min(all_milli, self.quota_milli)
        return len(self.cpus) * 1000 if self.cpus else all_milli


FREE = Held()


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left for best effort, with the terms that it was computed from, all in milli-cores."""

    milli: int
    threshold: int
    online: int
    rest: int
    measured: bool

    def described(self) -> str:
        """The sum in words."""
        what = "used" if self.measured else "asked for (nothing fresh was measured)"
        return f"{self.milli}m = {self.threshold}m - {self.online}m {what} online - {self.rest}m of the system"


def allowance(situation: Situation) -> Allowance:
    """What the threshold leaves for best effort; never below the minimum that the rules name, and never below nothing."""
    rules, machine = situation.slo.thresholds, situation.machine
    threshold = machine.cpu_milli * rules.suppress_percent // 100
    online = [pod for pod in situation.pods.values() if pod.online]
    reserved = machine.reserved.get("cpu", 0)
    sample = situation.fresh
    if sample is None:
        used = sum(max(pod.requests.get("cpu", 0), _last_used(situation, pod)) for pod in online)
        rest = reserved
    else:
        programs = _programs(situation, sample, {Qos.LSE, Qos.LSR, Qos.LS, Qos.SYSTEM})
        strangers = sum(use.cpu_milli for uid, use in sample.pods.items() if uid not in situation.pods)
        used = situation.used(online) + programs + strangers
        measured = sum(use.cpu_milli for use in sample.pods.values()) + _programs(situation, sample, set(Qos))
        rest = max(sample.node.cpu_milli - measured, reserved)
    least = machine.cpu_milli * (rules.suppress_min_percent or 0) // 100
    return Allowance(max(threshold - used - rest, least, 0), threshold, used, rest, sample is not None)


def suppressed(situation: Situation, allowed_milli: int, pools: CpuPools, held: Held, disturbs: bool = False) -> Held:
    """What best effort is held to from now on, given what it was ``held`` to, and whether it ``disturbs`` somebody."""
    rules = situation.slo.thresholds
    may_grow = situation.fresh is not None
    if not rules.enabled or (rules.policy is SuppressPolicy.WEIGHT and may_grow and not disturbs):
        return FREE
    if rules.policy in BY_QUOTA or not pools.best_effort:
        return Held(quota_milli=_quota(situation.machine.cpu_milli, allowed_milli, held.quota_milli, may_grow))
    return Held(cpus=_cpus(situation, allowed_milli, pools, held.cpus, may_grow))


def tier_files(held: Held, pools: CpuPools, machine: Machine) -> dict[Group, dict[str, str]]:
    """The files of best effort's tier, as far as it is held to less than all."""
    files: dict[str, str] = {}
    if held.quota_milli is not None:
        files[CPU_MAX] = cpu_max(max(LEAST_QUOTA_US, held.quota_milli * PERIOD_US // 1000))
    cpus = frozenset(held.cpus) or pools.best_effort
    if 0 < len(cpus) < len(machine.processors):
        files[CPU_SET] = format_cpus(cpus)
    return {BEST_EFFORT: files} if files else {}


def _quota(all_milli: int, allowed_milli: int, before: int | None, may_grow: bool) -> int:
    wanted = max(allowed_milli, LEAST_QUOTA_US * 1000 // PERIOD_US)
    if before is None:
        return wanted
    if abs(wanted - before) < all_milli * DEAD_PERCENT // 100 or (wanted > before and not may_grow):
        return before
    return min(wanted, before + all_milli * STEP_PERCENT // 100)


def _cpus(
    situation: Situation, allowed_milli: int, pools: CpuPools, before: tuple[int, ...], may_grow: bool
) -> tuple[int, ...]:
    """The CPUs that best effort gets; those that it has already stay as far as they are still to be had."""
    still = [cpu for cpu in before if cpu in pools.best_effort]
    count = max(-(-allowed_milli // 1000), LEAST_CPUS)
    if before:
        have = len(before)
        most = have + -(-len(situation.machine.processors) * STEP_PERCENT // 100) if may_grow else have
        if count > have and allowed_milli < have * 1000 + DEAD_MILLI:
            count = have
        count = min(count, max(most, LEAST_CPUS))
    if len(still) == len(before) == count:
        return before
    return choose_cpus(situation.machine.processors, pools, count)


def _last_used(situation: Situation, pod: NodePod) -> int:
    return situation.sample.of(pod.uid).cpu_milli if situation.sample else 0


def _programs(situation: Situation, sample: Sample, classes: set[Qos]) -> int:
    qos = {one.name: one.qos for one in situation.slo.host_applications}
    return sum(use.cpu_milli for name, use in sample.host_applications.items() if qos.get(name, Qos.LS) in classes)
