"""Who applies an object that nobody acts on is told so."""

from admission.domain.admit import admit
from kube import Store


def test_a_kind_that_nobody_acts_on_is_stored_with_a_warning() -> None:
    run = {"apiVersion": "tidegate.dev/v1", "kind": "PipelineRun", "metadata": {"name": "m"}}
    (warning,) = admit(run, None, Store()).warnings
    assert "PipelineRun" in warning and "no part of this system acts" in warning


def test_a_kind_that_somebody_acts_on_has_no_such_warning() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    assert admit(config, None, Store()).warnings == ()


def test_who_counts_on_a_policy_that_nobody_enforces_is_told_so() -> None:
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": {}}
    (warning,) = admit(policy, None, Store()).warnings
    assert "NetworkPolicy" in warning
