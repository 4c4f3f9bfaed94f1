"""What an API server is told of the webhooks: nothing is asked about that cannot be touched, and pods never wait."""

from typing import Any

from admission.domain.pod_review import SchedulerRule
from admission.webhooks.registration import MUTATING, VALIDATING, Asked, Place, configurations

PLACE = Place("tidegate-system", "tidegate-admission")
RULE = SchedulerRule("tidegate", {"matchLabels": {"team": "a"}}, {})


def webhooks(asked: Asked, plural: str = MUTATING) -> dict[str, Any]:
    return {one["name"]: one for one in configurations(asked, b"ca")[plural]["webhooks"]}


def test_our_kinds_wait_for_us_and_pods_do_not() -> None:
    both = webhooks(Asked(PLACE, RULE, [{}])) | webhooks(Asked(PLACE), VALIDATING)

    policies = {name: one["failurePolicy"] for name, one in both.items()}

    assert policies.pop("admission.tidegate.dev") == "Fail"
    assert set(policies.values()) == {"Ignore"}
    assert len(policies) == 4


def test_no_webhook_is_asked_about_the_system_or_about_ourselves_and_none_has_side_effects() -> None:
    for plural in (MUTATING, VALIDATING):
        for one in webhooks(Asked(PLACE, RULE, [{}]), plural).values():
            (never,) = [item for item in one["namespaceSelector"]["matchExpressions"] if item["operator"] == "NotIn"]
            assert {"kube-system", "tidegate-system"} <= set(never["values"])
            assert (one["sideEffects"], one["timeoutSeconds"]) == ("None", 5)


def test_pods_are_not_asked_about_where_nothing_could_change_them() -> None:
    assert list(webhooks(Asked(PLACE))) == ["admission.tidegate.dev", "amounts.nodes.tidegate.dev"]


def test_a_profile_is_evaluated_by_the_api_server_as_far_as_it_can() -> None:
    profile = {"selector": {"matchLabels": {"kind": "batch"}}, "namespaceSelector": {"matchLabels": {"team": "a"}}}

    one = webhooks(Asked(PLACE, None, [profile]))["profiles.pods.tidegate.dev"]

    assert one["namespaceSelector"]["matchLabels"] == {"team": "a"}
    (condition,) = one["matchConditions"]
    assert 'object.metadata.labels["kind"] in ["batch"]' in condition["expression"]


def test_profiles_of_several_namespaces_are_asked_about_in_all_and_one_that_selects_all_has_no_condition() -> None:
    several = [
        {"selector": {}, "namespaceSelector": {"matchLabels": {"team": "a"}}},
        {"selector": {"matchLabels": {"a": "b"}}},
    ]

    one = webhooks(Asked(PLACE, None, several))["profiles.pods.tidegate.dev"]

    assert "matchLabels" not in one["namespaceSelector"]
    assert "matchConditions" not in one


def test_deletions_are_asked_about_only_where_a_rule_may_forbid_them() -> None:
    rules = webhooks(Asked(PLACE), VALIDATING)["admission.tidegate.dev"]["rules"]

    deleted = [name for rule in rules if "DELETE" in rule["operations"] for name in rule["resources"]]

    assert deleted == ["elasticquotas", "queues"]


def test_profiles_come_before_the_scheduler_for_one_of_them_may_choose_it() -> None:
    assert list(webhooks(Asked(PLACE, RULE, [{}])))[1:3] == [
        "profiles.pods.tidegate.dev",
        "scheduler.pods.tidegate.dev",
    ]


def test_decisions_that_are_carried_out_are_not_reviewed_again() -> None:
    (condition,) = webhooks(Asked(PLACE, unreviewed=("gateway",)))["admission.tidegate.dev"]["matchConditions"]

    assert condition["expression"] == '!(request.userInfo.username in ["gateway"])'


def test_decisions_of_a_system_without_a_user_of_its_own_are_known_by_their_field_manager() -> None:
    (condition,) = webhooks(Asked(PLACE))["admission.tidegate.dev"]["matchConditions"]

    assert '"tidegate-queue-manager"' in condition["expression"]
    assert "request.options.fieldManager" in condition["expression"]


def test_with_cert_manager_it_says_whom_to_trust() -> None:
    told = configurations(Asked(PLACE, injected_from="tidegate-system/tls"), b"ca")[MUTATING]

    assert told["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "tidegate-system/tls"}
    assert "caBundle" not in told["webhooks"][0]["clientConfig"]
    assert told["webhooks"][0]["clientConfig"]["service"]["path"] == "/mutate"


def test_only_nodes_of_which_something_is_amplified_are_asked_about() -> None:
    one = webhooks(Asked(PLACE))["amounts.nodes.tidegate.dev"]

    (condition,) = one["matchConditions"]

    assert one["rules"][0]["resources"] == ["nodes/status"]
    assert "node.koordinator.sh/resource-amplification-ratio" in condition["expression"]
