"""How results are told."""

import json

from testing.scenarios.report import as_json, closing, line
from testing.scenarios.run import Result

PASSED = Result("gang", "a", True)
FAILED = Result("queue", "b", False, 3, "count (all) bound", "2", "1 of 2\n(p)")


def test_a_scenario_is_told_on_one_line() -> None:
    assert line(PASSED) == "PASS gang/a"
    assert line(FAILED) == "FAIL queue/b: step 3, count (all) bound, wanted 2, got 1 of 2 (p)"


def test_the_last_line_counts() -> None:
    assert closing([PASSED, FAILED, PASSED]) == "2 passed, 1 failed"


def test_results_can_be_told_as_json() -> None:
    told = json.loads(as_json([PASSED, FAILED]))
    assert (told["passed"], told["failed"]) == (1, 1)
    assert told["scenarios"][0] == {"area": "gang", "name": "a", "passed": True}
    assert told["scenarios"][1]["step"] == 3
