"""What a ResourceQuota shows as used."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Key
from kube.resource_quotas import counts_of, is_scoped, tracks
from resources import format_amounts

LIMITED = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "2Gi"}}
HARD = (
    "pods",
    "count/pods",
    "cpu",
    "requests.memory",
    "limits.cpu",
    "services",
    "count/jobs.batch",
    "requests.storage",
)


def pod(resources: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": resources or {}}], **spec}


def used(town: Any, name: str) -> dict[str, str]:
    shown: dict[str, str] = town.read("ResourceQuota", name).status["used"]
    return shown


def test_requests_limits_and_numbers_of_what_is_there_are_used(town: Any) -> None:
    town.apply("Pod", "early", pod(LIMITED))
    town.apply("ResourceQuota", "rq", {"hard": dict.fromkeys(HARD, 10)})
    town.apply("Pod", "late", pod(LIMITED))
    town.apply("Service", "s", {"ports": [{"port": 80}]})
    town.apply("PersistentVolumeClaim", "c", {"resources": {"requests": {"storage": "3Gi"}}})
    town.apply("Job", "j", {"completions": 1, "parallelism": 1, "suspend": True, "template": {"spec": pod()}})
    assert used(town, "rq") == {
        "pods": "2",
        "count/pods": "2",
        "cpu": "1",
        "requests.memory": "2Gi",
        "limits.cpu": "2",
        "services": "1",
        "count/jobs.batch": "1",
        "requests.storage": "3Gi",
    }
    assert town.read("ResourceQuota", "rq").status["hard"]["requests.memory"] == "10"


def test_a_pod_that_has_ended_counts_as_an_object_alone(town: Any) -> None:
    town.apply("ResourceQuota", "rq", {"hard": dict.fromkeys(HARD, 10)})
    town.apply("Pod", "p", pod(LIMITED))
    town.finish("p")
    assert (used(town, "rq")["pods"], used(town, "rq")["count/pods"], used(town, "rq")["cpu"]) == ("0", "1", "0")


def test_scopes_choose_the_pods(town: Any) -> None:
    term = {"labelSelector": {}, "topologyKey": "zone", "namespaces": ["other"]}
    town.apply("Pod", "plain", pod(LIMITED))
    town.apply("Pod", "ends", pod(LIMITED, activeDeadlineSeconds=60))
    town.apply("Pod", "best-effort", pod())
    town.apply("Pod", "urgent", pod(LIMITED, priorityClassName="high"))
    town.apply("Pod", "near", pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}))
    town.apply("Service", "s", {"ports": [{"port": 80}]})

    def chosen(**spec: Any) -> str:
        town.apply("ResourceQuota", "rq", {"hard": {"pods": 9, "services": 9}, **spec})
        assert used(town, "rq")["services"] == ("0" if spec else "1")
        return used(town, "rq")["pods"]

    def by_class(operator: str, **values: Any) -> str:
        scope = {"scopeName": "PriorityClass", "operator": operator, **values}
        return chosen(scopeSelector={"matchExpressions": [scope]})

    assert chosen() == "5"
    assert (chosen(scopes=["Terminating"]), chosen(scopes=["NotTerminating"])) == ("1", "4")
    assert (chosen(scopes=["BestEffort"]), chosen(scopes=["NotBestEffort", "NotTerminating"])) == ("2", "2")
    assert chosen(scopes=["CrossNamespacePodAffinity"]) == "1"
    assert (by_class("Exists"), by_class("DoesNotExist")) == ("1", "4")
    assert (by_class("In", values=["high"]), by_class("NotIn", values=["high"])) == ("1", "4")


STEPS = st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(("start", "end", "evict", "limit"))), max_size=8)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_what_is_used_is_the_sum_over_what_is_there(town: Any, steps: list[tuple[str, str]]) -> None:
    town = type(town)()
    store, hard = town.cluster.store, {"pods": 9, "cpu": 9, "count/pods": 9}
    for number, (name, step) in enumerate(steps):
        there = Key("Pod", "default", name) in store.objects
        if step == "limit":
            town.apply("ResourceQuota", "rq", {"hard": hard, "scopes": ["NotBestEffort"] if number % 2 else []})
        elif step == "start" and not there:
            town.apply("Pod", name, pod(LIMITED if number % 3 else None))
        elif step == "end" and there:
            town.finish(name)
        elif step == "evict" and there:
            town.evict(name)
    quota = store.get(Key("ResourceQuota", "default", "rq"))
    if quota is None:
        return
    total = dict.fromkeys(sorted(hard), 0)
    for item in store.objects.values():
        if not is_scoped(quota.spec) or (item.kind == "Pod" and tracks(quota.spec, item.spec)):
            for name, amount in counts_of(item).items():
                if name in total:
                    total[name] += amount
    assert quota.status["used"] == format_amounts(total)
