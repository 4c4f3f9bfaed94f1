"""The strategies by their names, in the order in which they have their turn: what is broken before what could be better."""

from collections.abc import Callable, Mapping

from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import StrategyArgs
from descheduler.domain.strategies.custom_priority import prefer_cheaper
from descheduler.domain.strategies.defragmentation import defragment
from descheduler.domain.strategies.duplicates import remove_duplicates
from descheduler.domain.strategies.ended_pods import remove_failed, remove_old, remove_restarting
from descheduler.domain.strategies.fragmentation import even_shares
from descheduler.domain.strategies.node_utilization import gather_requests, spread_requests
from descheduler.domain.strategies.scale_down import scale_down
from descheduler.domain.strategies.violations import remove_crowding, remove_misplaced, remove_skewed, remove_tainted

Strategy = Callable[[StrategyArgs, Plan], None]
STRATEGIES: Mapping[str, Strategy] = {
    "RemoveFailedPods": remove_failed,
    "RemovePodsViolatingNodeTaints": remove_tainted,
    "RemovePodsViolatingNodeAffinity": remove_misplaced,
    "RemovePodsViolatingInterPodAntiAffinity": remove_crowding,
    "RemovePodsHavingTooManyRestarts": remove_restarting,
    "PodLifeTime": remove_old,
    "RemoveDuplicates": remove_duplicates,
    "RemovePodsViolatingTopologySpreadConstraint": remove_skewed,
    "Defragmentation": defragment,
    "LowNodeUtilization": spread_requests,
    "HighNodeUtilization": gather_requests,
    "CustomPriority": prefer_cheaper,
    "FragmentationAware": even_shares,
    "ScaleDownBinPack": scale_down,
}
