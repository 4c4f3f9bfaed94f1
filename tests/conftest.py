"""What holds for all tests."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# A busy machine makes examples slow, not wrong: how long one takes is not what is tested here.
settings.register_profile("tidegate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidegate")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What could not run on this machine is said, each reason in one line."""
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())]
    for reason, count in Counter(reasons).items():
        terminalreporter.line(f"skipped {count}: {reason}")
