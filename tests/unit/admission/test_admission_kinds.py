"""The smaller kinds: groups, hypernodes, commands, flows, cron jobs, workloads, quotas, and those of the core."""

from typing import Any

import pytest

from admission.domain.admit import admit
from admission.domain.errors import Rejected

API = {
    "PodGroup": "scheduling.volcano.sh/v1beta1", "HyperNode": "topology.volcano.sh/v1alpha1",
    "Command": "bus.volcano.sh/v1alpha1", "JobFlow": "flow.volcano.sh/v1alpha1", "JobTemplate": "flow.volcano.sh/v1alpha1",
    "CronJob": "batch.volcano.sh/v1alpha1", "Queue": "scheduling.volcano.sh/v1beta1", "Job": "batch/v1",
    "Deployment": "apps/v1", "StatefulSet": "apps/v1", "PodDisruptionBudget": "policy/v1", "Cohort": "kueue.x-k8s.io/v1beta2",
    "ElasticQuota": "scheduling.sigs.k8s.io/v1alpha1", "ClusterQueue": "kueue.x-k8s.io/v1beta2",
    "LocalQueue": "kueue.x-k8s.io/v1beta2", "ClusterNetworkTopology": "scheduling.koordinator.sh/v1alpha1",
}  # fmt: skip
POD = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
ENDING = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
TASKS = {"tasks": [{"name": "w", "template": POD}]}
BLOCK = {"topologyLayer": "Block", "labelKey": ["net.example.com/block"]}
HOURLY = {"schedule": "@hourly", "jobTemplate": {"spec": TASKS}}
ITSELF = {"exactMatch": {"name": "x"}}
NO_SCHEDULES = (
    "", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "TZ=UTC * * * * *", "@never", "@every x",
    "@every 0s", "@every soon", "@often", "0 0 31 feb *",
)  # fmt: skip
WEB = {"metadata": {"labels": {"app": "web"}}, **POD}
SELECTED = {"selector": {"matchLabels": {"app": "web"}}, "template": WEB}


def thing(kind: str, name: str = "x", **parts: Any) -> dict[str, Any]:
    labels = parts.pop("labels", None)
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": API.get(kind, "v1"), "kind": kind, "metadata": metadata, **parts}


def scoped(name: str, operator: str, *values: str) -> dict[str, Any]:
    item = {"scopeName": name, "operator": operator, **({"values": list(values)} if values else {})}
    return {"hard": {"pods": 1}, "scopeSelector": {"matchExpressions": [item]}}


@pytest.mark.parametrize(
    ("kind", "spec", "wanted"),
    [
        ("PodGroup", {}, {"minMember": 1, "queue": "default"}),
        ("PodGroup", {"networkTopology": {"highestTierAllowed": 1}}, {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}),
        ("JobFlow", {"flows": [{"name": "a"}]}, {"jobRetainPolicy": "retain"}),
        ("JobTemplate", TASKS, {"minAvailable": 1, "maxRetry": 3}),
        ("CronJob", HOURLY, {"concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 3}),
        ("Deployment", SELECTED, {"replicas": 1, "progressDeadlineSeconds": 600}),
        ("StatefulSet", SELECTED, {"replicas": 1, "podManagementPolicy": "OrderedReady"}),
        ("Job", {"template": ENDING}, {"parallelism": 1, "completions": 1, "backoffLimit": 6, "suspend": False}),
        ("Service", {"ports": [{"port": 80}]}, {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}),
        ("ClusterQueue", {}, {"queueingStrategy": "BestEffortFIFO", "stopPolicy": "None"}),
        ("ClusterQueue", {}, {"preemption": {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}}),
        ("LocalQueue", {"clusterQueue": "c"}, {"stopPolicy": "None"}),
    ],
)  # fmt: skip
def test_what_is_left_out_is_filled_in(gate: Any, kind: str, spec: dict[str, Any], wanted: dict[str, Any]) -> None:
    stored = gate.apply(thing(kind, spec=spec))["spec"]
    assert {name: stored.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("PodGroup", {"minMember": -1}, "spec.minMember"),
        ("PodGroup", {"minTaskMember": {"ps": -1}}, "spec.minTaskMember.ps"),
        ("PodGroup", {"queue": "nowhere"}, "spec.queue"),
        ("PodGroup", {"subGroupPolicy": [{"name": "a", "subGroupSize": 0}]}, "spec.subGroupPolicy[0].subGroupSize"),
        ("PodGroup", {"subGroupPolicy": [{}]}, "spec.subGroupPolicy[0].name"),
        ("PodGroup", {"minResources": {"cpu": "x"}}, "spec.minResources.cpu"),
        ("HyperNode", {"members": [{"type": "Rack", "selector": ITSELF}]}, "spec.members[0].type"),
        ("HyperNode", {"members": [{"type": "HyperNode", "selector": ITSELF}]}, "spec.members[0].selector.exactMatch.name"),
        ("ClusterNetworkTopology", {"networkTopologySpec": [BLOCK, BLOCK]}, "spec.networkTopologySpec[1].topologyLayer"),
        ("ClusterNetworkTopology", {"networkTopologySpec": [{"labelKey": ["b"]}]}, "spec.networkTopologySpec[0].topologyLayer"),
        (
            "ClusterNetworkTopology",
            {"networkTopologySpec": [{**BLOCK, "parentTopologyLayer": "Spine"}]},
            "spec.networkTopologySpec[0].parentTopologyLayer",
        ),
        ("ClusterNetworkTopology", {"networkTopologySpec": [{"topologyLayer": "B"}]}, "spec.networkTopologySpec[0].labelKey"),
        ("JobFlow", {}, "spec.flows"),
        ("JobFlow", {"flows": [{"name": "a", "dependsOn": {"targets": ["b"]}}]}, "spec.flows[0].dependsOn.targets"),
        (
            "JobFlow",
            {"flows": [{"name": "a", "dependsOn": {"probe": {"tcpSocketList": [{"taskName": "w", "port": 0}]}}}]},
            "spec.flows[0].dependsOn.probe.tcpSocketList[0].port",
        ),
        (
            "JobFlow",
            {"flows": [{"name": "a", "dependsOn": {"probe": {"httpGetList": [{"port": 80}]}}}]},
            "spec.flows[0].dependsOn.probe.httpGetList[0].taskName",
        ),
        ("JobFlow", {"flows": [{"name": "a"}, {"name": "a"}]}, "spec.flows[1].name"),
        ("JobFlow", {"flows": [{"name": "a"}], "jobRetainPolicy": "burn"}, "spec.jobRetainPolicy"),
        ("JobTemplate", {"tasks": []}, "spec.tasks"),
        ("CronJob", {"schedule": "@hourly"}, "spec.jobTemplate.spec"),
        ("CronJob", {"schedule": "@hourly", "jobTemplate": {"spec": {"tasks": []}}}, "spec.jobTemplate.spec.tasks"),
        ("CronJob", {"schedule": "@hourly", "timeZone": "Mars/Olympus", "jobTemplate": {"spec": TASKS}}, "spec.timeZone"),
        ("CronJob", {"schedule": "@hourly", "timeZone": "here/", "jobTemplate": {"spec": TASKS}}, "spec.timeZone"),
        ("Deployment", {**SELECTED, "selector": {}}, "spec.selector"),
        ("Deployment", {**SELECTED, "template": POD}, "spec.template.metadata.labels"),
        ("Deployment", {**SELECTED, "replicas": -1}, "spec.replicas"),
        ("Job", {"template": POD}, "spec.template.spec.restartPolicy"),
        ("Job", {"template": ENDING, "parallelism": 1, "completionMode": "Indexed"}, "spec.completions"),
        ("Service", {}, "spec.ports"),
        ("Service", {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, "spec.ports[0].name"),
        ("PodDisruptionBudget", {"minAvailable": 1, "maxUnavailable": 1}, "spec.maxUnavailable"),
        ("PodDisruptionBudget", {"minAvailable": "half"}, "spec.minAvailable"),
        ("ResourceQuota", {"hard": {"requests.cpu": "-1"}}, 'spec.hard["requests.cpu"]'),
        ("ResourceQuota", {"scopes": ["Sometimes"]}, "spec.scopes[0]"),
        ("ResourceQuota", {"scopes": ["BestEffort", "NotBestEffort"]}, "spec.scopes[1]"),
        ("ResourceQuota", scoped("Terminating", "In", "x"), "spec.scopeSelector.matchExpressions[0].operator"),
        ("ResourceQuota", scoped("PriorityClass", "In"), "spec.scopeSelector.matchExpressions[0].values"),
        ("ResourceQuota", scoped("PriorityClass", "Exists", "x"), "spec.scopeSelector.matchExpressions[0].values"),
        ("PersistentVolumeClaim", {"accessModes": ["ReadWriteOnce"]}, "spec.resources.requests.storage"),
        ("Cohort", {"parentName": "x"}, "spec.parentName"),
        ("LocalQueue", {}, "spec.clusterQueue"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_by_field(gate: Any, kind: str, spec: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(thing(kind, spec=spec))


def test_an_object_for_which_a_quota_has_no_room_is_refused_with_the_numbers(gate: Any) -> None:
    def claim(name: str, size: str) -> dict[str, Any]:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return thing("PersistentVolumeClaim", name, spec=spec)

    gate.apply(thing("ResourceQuota", "rq", spec={"hard": {"count/configmaps": 1, "requests.storage": "3Gi"}}))
    gate.apply(thing("ResourceQuota", "pods", spec={"hard": {"count/configmaps": 0}, "scopes": ["BestEffort"]}))
    gate.apply(thing("ConfigMap", "a"))
    gate.apply(thing("ConfigMap", "a", data={"x": "y"}))
    assert "metadata.namespace" in gate.wrong(thing("ConfigMap", "b"))
    gate.apply(claim("c", "2Gi"))
    with pytest.raises(Rejected, match=r"quota rq of the namespace: needs requests.storage 2Gi, 2Gi of 3Gi used"):
        gate.apply(claim("d", "2Gi"))
    gate.apply(claim("d", "1Gi"))


def test_a_quota_for_a_scope_that_is_not_heeded_is_let_in_with_a_warning(gate: Any) -> None:
    gate.apply(thing("ResourceQuota", spec=scoped("PriorityClass", "In", "high")))
    assert not gate.warnings
    gate.apply(thing("ResourceQuota", spec={"hard": {}, "scopes": ["VolumeAttributesClass"]}))
    assert [warning.partition(":")[0] for warning in gate.warnings] == ["spec.scopes[0]"]


@pytest.mark.parametrize(
    "text", ["* * * * *", "*/5 0-6 1,15 jan-mar mon", "0 0 * * 7", "@daily", "@every 1h30m", "5/10 * * * ?"]
)
def test_a_schedule_is_five_fields_or_a_word(gate: Any, text: str) -> None:
    assert not gate.wrong(thing("CronJob", spec={"schedule": text, "jobTemplate": {"spec": TASKS}}))


@pytest.mark.parametrize("text", NO_SCHEDULES)
def test_what_is_no_schedule_is_refused(gate: Any, text: str) -> None:
    assert "spec.schedule" in gate.wrong(thing("CronJob", spec={"schedule": text, "jobTemplate": {"spec": TASKS}}))


def test_the_name_of_a_cron_job_leaves_room_for_its_jobs(gate: Any) -> None:
    spec = {"schedule": "@daily", "jobTemplate": {"spec": TASKS}}
    assert "metadata.name" in gate.wrong(thing("CronJob", "x" * 53, spec=spec))


def test_a_flow_whose_templates_are_missing_is_let_in_with_a_warning(gate: Any) -> None:
    gate.apply(thing("JobTemplate", "a", spec=TASKS))
    gate.apply(thing("JobFlow", spec={"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]}))
    assert [warning.partition(":")[0] for warning in gate.warnings] == ["spec.flows[1].name"]


def test_a_command_means_the_object_that_has_the_name_now(gate: Any) -> None:
    gate.apply(thing("Queue", "q", spec={}))
    stored = gate.apply(thing("Command", action="CloseQueue", target={"kind": "Queue", "name": "q"}))
    assert stored["target"]["uid"] == "uid-0"


@pytest.mark.parametrize(
    ("action", "target", "path"),
    [
        ("CloseQueue", {"kind": "Queue", "name": "nowhere"}, "target.name"),
        ("CloseQueue", {"kind": "Queue", "name": "q", "uid": "other"}, "target.uid"),
        ("CloseQueue", {"kind": "Queue", "name": "root"}, "action"),
        ("AbortJob", {"kind": "Queue", "name": "q"}, "action"),
        ("AbortJob", {"kind": "Job", "name": "nowhere"}, "target.name"),
        ("AbortJob", {"kind": "Pod", "name": "p"}, "target.kind"),
        ("AbortJob", {}, "target.name"),
        ("OpenQueue", {"kind": "Queue", "name": "child"}, "action"),
    ],
)
def test_a_command_for_nothing_is_refused_by_field(gate: Any, action: str, target: dict[str, str], path: str) -> None:
    gate.apply(thing("Queue", "root", spec={}))
    gate.apply(thing("Queue", "q", spec={}))
    gate.apply(thing("Queue", "child", spec={"parent": "q"}))
    gate.apply(thing("Queue", "q", spec={}), state="Closed")
    assert path in gate.wrong(thing("Command", action=action, target=target))


def test_plain_text_of_a_secret_becomes_data_and_values_are_never_told(gate: Any) -> None:
    assert gate.apply(thing("Secret", stringData={"key": "text"}))["data"] == {"key": "dGV4dA=="}
    wrong = gate.wrong(thing("Secret", data={"key": "hunter2!"}))
    assert "hunter2" not in str(wrong)
    assert list(wrong) == ["data.key"]


def test_an_immutable_config_map_stays(gate: Any) -> None:
    gate.apply(thing("ConfigMap", data={"a": "1"}, immutable=True))
    assert set(gate.wrong(thing("ConfigMap", data={"a": "2"}))) == {"data.a", "immutable"}


def test_the_default_namespace_stays(gate: Any) -> None:
    gate.apply(thing("Namespace", "default"))
    gate.apply(thing("Namespace", "lab"))
    assert "cannot be deleted" in gate.keeps("Namespace/default")
    assert gate.keeps("Namespace/lab") == ""


def test_the_selector_of_a_deployment_stays(gate: Any) -> None:
    gate.apply(thing("Deployment", spec=SELECTED))
    other = {"selector": {"matchLabels": {"app": "api"}}, "template": {"metadata": {"labels": {"app": "api"}}, **POD}}
    assert list(gate.wrong(thing("Deployment", spec=other))) == ["spec.selector.matchLabels.app"]
    assert not gate.wrong(thing("Deployment", spec={**SELECTED, "replicas": 3}))


def test_the_pods_of_a_batch_job_that_exists_stay(gate: Any) -> None:
    gate.apply(thing("Job", spec={"template": ENDING}))
    other = {"spec": {**ENDING["spec"], "restartPolicy": "OnFailure"}}
    assert list(gate.wrong(thing("Job", spec={"template": other, "parallelism": 2, "completions": 1}))) == [
        "spec.template.spec.restartPolicy"
    ]


def test_a_kind_that_nobody_serves_is_refused(gate: Any) -> None:
    with pytest.raises(Rejected, match="not a kind that Tidegate serves"):
        admit({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}, None, gate.store)


def test_labels_are_texts_and_names_are_names_for_every_kind(gate: Any) -> None:
    wrong = thing("ServiceAccount", "Not_a_name")
    assert list(gate.wrong(wrong)) == ["metadata.name"]
    wrong["metadata"]["labels"] = {"version": 1}
    assert list(gate.wrong(wrong)) == ["metadata.labels.version"]


def test_an_update_keeps_what_only_the_cluster_says(gate: Any) -> None:
    stored = gate.apply(thing("ConfigMap", data={"a": "1"}))
    assert "creationTimestamp" not in stored["metadata"]
    item = next(iter(gate.store.objects.values()))
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]
    metadata = {**item.metadata, "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners}
    gate.store.put(item.changed(metadata=metadata))
    metadata = gate.apply(thing("ConfigMap", data={"a": "2"}))["metadata"]
    assert (metadata["creationTimestamp"], metadata["ownerReferences"]) == ("2026-01-01T00:00:00Z", owners)


QUOTA = "quota.scheduling.koordinator.sh/"


def quota(name: str, least: Any, most: Any, parent: str = "", *, holds: bool = False) -> dict[str, Any]:
    labels = {**({QUOTA + "parent": parent} if parent else {}), **({QUOTA + "is-parent": "true"} if holds else {})}
    return thing("ElasticQuota", name, labels=labels, spec={"min": {"cpu": least}, "max": {"cpu": most}})


def test_an_elastic_quota_hangs_under_one_that_is_a_parent(gate: Any) -> None:
    gate.apply(quota("dept", 10, 10, holds=True))
    gate.apply(quota("leaf", 1, 10))
    assert "is no parent" in next(iter(gate.wrong(quota("team", 1, 10, "leaf")).values()))
    assert "does not exist" in next(iter(gate.wrong(quota("team", 1, 10, "nowhere")).values()))
    gate.apply(quota("team", 8, 10, "dept"))
    assert list(gate.wrong(quota("other", 3, 10, "dept"))) == ["spec.min.cpu"]
    assert list(gate.wrong(quota("dept", 7, 10, holds=True))) == ["spec.min.cpu"]
    assert list(gate.wrong(quota("dept", 10, 10))) == [f'metadata.labels["{QUOTA}is-parent"]']


def test_an_elastic_quota_limits_what_its_parent_limits(gate: Any) -> None:
    """What one of them left out would be unlimited there."""
    gate.apply(quota("dept", 10, 10, holds=True))
    team = quota("team", 1, 5, "dept")
    team["spec"]["max"]["memory"] = "1Gi"
    assert list(gate.wrong(team)) == ["spec.max.memory"]
    team["spec"] = {"min": {}, "max": {}}
    assert list(gate.wrong(team)) == ["spec.max.cpu"]


@pytest.mark.parametrize(
    ("weight", "said"), [('{"cpu": -1}', "must not be negative"), ("[1]", "JSON map"), ("heavy", "JSON map")]
)
def test_a_shared_weight_is_amounts_that_are_not_negative(gate: Any, weight: str, said: str) -> None:
    made = quota("team", 1, 5)
    made["metadata"]["annotations"] = {QUOTA + "shared-weight": weight}
    assert said in next(iter(gate.wrong(made).values()))
    made["metadata"]["annotations"] = {QUOTA + "shared-weight": '{"cpu": 3}'}
    assert not gate.wrong(made)


def test_a_namespace_belongs_to_one_elastic_quota(gate: Any) -> None:
    first, second = quota("first", 1, 5), quota("second", 1, 5)
    first["metadata"]["annotations"] = {QUOTA + "namespaces": '["lab", "shop"]'}
    gate.apply(first)
    assert not gate.wrong(first)
    second["metadata"]["annotations"] = {QUOTA + "namespaces": '["yard", "lab"]'}
    assert "lab belongs to quota first" in next(iter(gate.wrong(second).values()))
    second["metadata"]["annotations"] = {QUOTA + "namespaces": "lab"}
    assert "JSON list" in next(iter(gate.wrong(second).values()))


@pytest.mark.parametrize("kind", ["ClusterQueue", "Cohort", "LocalQueue"])
def test_a_weight_of_fair_sharing_is_not_negative(gate: Any, kind: str) -> None:
    target = {"clusterQueue": "q"} if kind == "LocalQueue" else {}
    assert list(gate.wrong(thing(kind, "a", spec={**target, "fairSharing": {"weight": -1}}))) == [
        "spec.fairSharing.weight"
    ]
    assert not gate.wrong(thing(kind, "a", spec={**target, "fairSharing": {"weight": "0.5"}}))


def test_cohorts_make_a_tree(gate: Any) -> None:
    gate.apply(thing("Cohort", "a", spec={}))
    gate.apply(thing("Cohort", "b", spec={"parentName": "a"}))
    assert list(gate.wrong(thing("Cohort", "a", spec={"parentName": "b"}))) == ["spec.parentName"]
