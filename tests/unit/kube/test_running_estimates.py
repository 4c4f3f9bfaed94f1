"""How long work runs by what its owner says."""

from kube.running_estimates import ESTIMATE, stated_length, turn_after


def test_the_first_who_says_anything_is_believed() -> None:
    assert stated_length({}, {ESTIMATE: "2m"}, {ESTIMATE: "1h"}) == 120_000
    assert stated_length({ESTIMATE: "soon"}, {ESTIMATE: "1h"}) is None
    assert stated_length({ESTIMATE: ""}, {}) is None


def test_a_turn_has_a_time_only_where_that_is_known() -> None:
    assert turn_after([("a", 1_000), ("b", 2_000)], 2_000) == {
        "estimateMs": 2_000,
        "estimate": "1970-01-01T00:00:02Z, by when a, b should have ended",
    }
    assert turn_after([("a", 1_000), ("b", None)], None) == {
        "estimate": "once a, b ended; nobody says when that of b is"
    }
    assert turn_after([("b", None)], None) == {"estimate": "once b ended; nobody says when that is"}
