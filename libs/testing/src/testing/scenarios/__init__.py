"""Scenarios: cases in a file that run against any system behind the port ``Target``, and say what differs."""

from testing.scenarios.errors import ScenarioError
from testing.scenarios.load import load_scenario, parse_scenario, scenario_files
from testing.scenarios.scenario import Scenario
from testing.scenarios.target import MetricSample, NodeUsage, OpenTarget, PodReport, Target

__all__ = [
    "MetricSample",
    "NodeUsage",
    "OpenTarget",
    "PodReport",
    "Scenario",
    "ScenarioError",
    "Target",
    "load_scenario",
    "parse_scenario",
    "scenario_files",
]
