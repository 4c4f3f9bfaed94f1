"""What a pod counts for in a quota, and in the minimum of its group."""

from typing import Any

import pytest

from kube.resource_quotas import minimum_counts, pod_counts
from resources import QuantityError

SPEC: dict[str, Any] = {
    "containers": [
        {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}},
        {"name": "b", "resources": {"limits": {"cpu": "500m"}}},
    ],
    "overhead": {"cpu": "250m", "memory": "64Mi"},
}


def test_requests_and_limits_count_by_their_own_names_and_the_overhead_on_top_of_what_there_is() -> None:
    """1 + 0.5 + 0.25 cores are asked for, 2 + 0.5 + 0.25 are the limit; memory has none, so the overhead makes none."""
    limits = {"limits.cpu": 2750}
    asked = {"cpu": 1750, "memory": (1 << 30) + (64 << 20)}
    assert minimum_counts(SPEC) == asked | limits
    assert pod_counts(SPEC) == {"pods": 1, **asked, **{f"requests.{name}": asked[name] for name in asked}, **limits}


def test_what_is_no_quantity_counts_as_nothing_and_makes_no_minimum() -> None:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"cpu": "much"}}}]}
    assert pod_counts(spec) == {"pods": 1}
    with pytest.raises(QuantityError):
        minimum_counts(spec)
