"""The service chassis: settings, lifecycle, leadership, health, metrics, traces, logs, and the shell around a pure core."""

from chassis.clock import Clock, LoopClock, SteadyClock, SystemClock
from chassis.core import Core, Piecemeal, Remembering
from chassis.decider import Decider
from chassis.measures import Measures
from chassis.role import Role, Workplace

__all__ = [
    "Clock",
    "Core",
    "Decider",
    "LoopClock",
    "Measures",
    "Piecemeal",
    "Remembering",
    "Role",
    "SteadyClock",
    "SystemClock",
    "Workplace",
]
