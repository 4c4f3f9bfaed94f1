"""The pure core of slo_controller: strategies of nodes, what may be lent on them, predictions, recommendations."""

from slo_controller.domain.core import SloCore
from slo_controller.domain.policy import SloPolicy

__all__ = ["SloCore", "SloPolicy"]
