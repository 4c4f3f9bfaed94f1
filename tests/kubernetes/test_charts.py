"""What the charts are rendered to: no more rights than needed, hardened pods, and a system whose parts find one another."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_tools import (
    BUS,
    CHARTS,
    EXTERNAL,
    NAMESPACE,
    OVER_TLS,
    SERVICE_CHARTS,
    THREE,
    Helm,
    Manifest,
    arguments,
    deep,
    named,
    of_kind,
    pods,
)

ALONE = {"nats": {"url": "nats://bus.example:4222", "credentialsSecret": "login"}}
OPTIONS = {"global": {"serviceMonitor": {"enabled": True}}, "dashboard": {"enabled": True}}
SETS: dict[str, Manifest] = {
    "as it is": {},
    "three servers": deep(THREE, OVER_TLS),
    "existing bus": EXTERNAL,
    "with options": OPTIONS,
}
WITH_OPERATOR = ("--api-versions", "monitoring.coreos.com/v1/ServiceMonitor")


@pytest.fixture(scope="module", params=SETS)
def rendered(helm: Helm, request: pytest.FixtureRequest) -> list[Manifest]:
    return helm.template("tidegate", SETS[request.param], *WITH_OPERATOR)


@pytest.mark.parametrize("chart", [*SERVICE_CHARTS, "nats", "tidegate", "service-lib"])
def test_a_chart_has_nothing_that_helm_warns_of(helm: Helm, chart: str) -> None:
    values = ALONE if chart in SERVICE_CHARTS else {}
    said = helm.run("lint", "--strict", str(CHARTS / chart), values=values).stdout
    assert "0 chart(s) failed" in said


def test_routes_may_lead_to_the_inference_gateway_from_namespaces_that_are_named(helm: Helm) -> None:
    """To it and to nothing else; from none unless it is said."""
    values = {"inference-gateway": {"routesFrom": ["models", "team-a"]}}
    granted = of_kind(helm.template("tidegate", values), "ReferenceGrant")
    (gateway,) = [
        one for one in of_kind(helm.template("tidegate"), "Service") if "requests" in str(one["spec"]["ports"])
    ]
    assert [one["spec"]["from"][0]["namespace"] for one in granted] == ["models", "team-a"]
    for one in granted:
        assert one["spec"]["to"] == [{"group": "", "kind": "Service", "name": gateway["metadata"]["name"]}]
        assert one["metadata"]["namespace"] == gateway["metadata"]["namespace"]
    assert not of_kind(helm.template("tidegate"), "ReferenceGrant")


@pytest.mark.parametrize("chart", SERVICE_CHARTS)
def test_a_service_is_installed_alone_on_a_bus_that_is_there(helm: Helm, chart: str) -> None:
    objects = helm.template(chart, ALONE, release=chart)
    given = arguments(objects, chart)
    assert given["nats-url"] == "nats://bus.example:4222"
    (spec,) = [spec for _, spec in pods(objects)]
    assert {"name": "bus", "secret": {"secretName": "login", "defaultMode": 0o440}} in spec["volumes"]


@pytest.mark.parametrize("chart", SERVICE_CHARTS)
def test_a_service_alone_has_to_be_told_where_the_bus_is(helm: Helm, chart: str) -> None:
    refused = helm.run("template", "x", str(CHARTS / chart), check=False)
    assert refused.returncode != 0 and "where is the bus?" in refused.stderr


@pytest.mark.parametrize(
    "values",
    [
        {"admision": {}},
        {"admission": {"replicass": 3}},
        {"gang-scheduler": {"settings": {"schedulerName": "tidegate"}}},
        {"gang-scheduler": {"settings": {"preemption": "no"}}},
        {"nats": {"replicas": 2}},
        {"nats": {"storage": {"size": "lots"}}},
        {"global": {"nats": {"extern": {}}}},
        {"cluster-gateway": {"image": {"pullPolicy": "Sometimes"}}},
        {"nats": {"enabled": False}, "global": {"nats": {"external": {"url": "http://bus.example"}}}},
        {"global": {"nats": {"tls": {"certmanager": {"enabled": True}}}}},
    ],
    ids=str,
)
def test_a_value_that_is_misspelt_or_makes_no_sense_is_refused(helm: Helm, values: Manifest) -> None:
    refused = helm.run("template", "tidegate", str(CHARTS / "tidegate"), values=values, check=False)
    assert refused.returncode != 0 and "schema" in refused.stderr


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"nats": {"enabled": False}}, "where is the existing one?"),
        ({"global": {"nats": {"bundled": False}}}, "where is the bus?"),
        ({"global": {"nats": {"external": BUS}}}, "installs one that nobody would use"),
        ({"global": {"nats": {"streamReplicas": 3}}}, "streamReplicas is 3, more than there are servers"),
        (deep(EXTERNAL, OVER_TLS), "for an existing one: tls:// in its address"),
    ],
    ids=str,
)
def test_values_that_mean_nothing_together_are_refused_with_the_way_out(helm: Helm, values: Manifest, why: str) -> None:
    refused = helm.run("template", "tidegate", str(CHARTS / "tidegate"), values=values, check=False)
    assert refused.returncode != 0 and why in refused.stderr


def test_only_who_talks_to_the_api_server_has_a_token(rendered: list[Manifest]) -> None:
    mounted = {name for name, spec in pods(rendered) if spec["automountServiceAccountToken"]}
    assert mounted == {"tidegate-admission", "tidegate-cluster-gateway", "tidegate-definitions"}
    assert not any(item["automountServiceAccountToken"] for item in of_kind(rendered, "ServiceAccount"))


def test_only_accounts_with_a_token_have_rights_and_each_is_its_own(rendered: list[Manifest]) -> None:
    bindings = of_kind(rendered, "RoleBinding", "ClusterRoleBinding")
    bound = [(item["kind"], subject["name"]) for item in bindings for subject in item["subjects"]]
    assert sorted(bound) == [
        ("ClusterRoleBinding", "tidegate-admission"),
        ("ClusterRoleBinding", "tidegate-cluster-gateway"),
        ("ClusterRoleBinding", "tidegate-definitions"),
        ("RoleBinding", "tidegate-admission"),
    ]
    accounts = [spec["serviceAccountName"] for _, spec in pods(rendered)]
    assert len(set(accounts)) == len(accounts)


def test_no_role_has_a_wildcard_or_a_right_that_gives_more_rights(rendered: list[Manifest]) -> None:
    for role in of_kind(rendered, "Role", "ClusterRole"):
        for rule in role["rules"]:
            words = {*rule["verbs"], *rule["resources"], *rule["apiGroups"]}
            assert not words & {"*", "escalate", "bind", "impersonate", "deletecollection", "nodes/proxy", "pods/exec"}
            assert "rbac.authorization.k8s.io" not in rule["apiGroups"]
            assert "nonResourceURLs" not in rule


def test_admission_may_touch_its_own_secret_and_webhooks_only(usual: list[Manifest]) -> None:
    rules = [
        rule
        for role in of_kind(usual, "Role", "ClusterRole")
        if "admission" in role["metadata"]["name"]
        for rule in role["rules"]
    ]
    named_ones = [rule for rule in rules if "secrets" in rule["resources"] or "webhook" in rule["resources"][0]]
    assert named_ones and all(rule["resourceNames"] for rule in named_ones)
    assert not any({"create", "list", "watch", "delete"} & set(rule["verbs"]) for rule in named_ones)


def test_what_the_gateway_does_not_need_to_do_it_may_not_do(helm: Helm) -> None:
    def rights(values: Manifest) -> set[tuple[str, str]]:
        (role,) = of_kind(helm.template("cluster-gateway", {**ALONE, **values}), "ClusterRole")
        return {(verb, plural) for rule in role["rules"] for plural in rule["resources"] for verb in rule["verbs"]}

    usual = rights({})
    assert usual - rights({"secrets": False}) == {(verb, "secrets") for verb in ("create", "get", "list", "watch")}
    assert {verb for verb, _ in rights({"writesForUsers": True}) - usual} == {"impersonate"}


def test_pods_are_restricted_but_for_the_node_agent(rendered: list[Manifest]) -> None:
    for name, spec in pods(rendered):
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"], name
            assert context["capabilities"]["drop"] == ["ALL"] and not context["privileged"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostIPC", "hostPID"} & spec.keys(), name
        if name != "tidegate-node-agent":
            assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0, name
            assert not any("hostPath" in volume for volume in spec.get("volumes", ())), name


def test_variables_of_other_services_are_kept_from_the_settings(rendered: list[Manifest]) -> None:
    """A Service `tidegate-nats` would become TIDEGATE_NATS_PORT in every pod: an unknown setting, which is an error."""
    assert not any(spec["enableServiceLinks"] for _, spec in pods(rendered))


def test_every_service_is_probed_limited_and_spread(usual: list[Manifest]) -> None:
    for item in of_kind(usual, "Deployment", "StatefulSet", "DaemonSet"):
        (container,) = item["spec"]["template"]["spec"]["containers"]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
    for kind in ("Deployment", "StatefulSet"):
        for item in of_kind(usual, kind):
            budget = named(usual, "PodDisruptionBudget", item["metadata"]["name"])
            assert budget["spec"]["selector"] == item["spec"]["selector"]


def test_a_service_that_leads_is_ready_when_it_could_take_over(usual: list[Manifest]) -> None:
    """Else the second replica would never be ready, and no rollout would come to its end. Those that answer users all serve."""
    asked = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["grpc"]
        for item in of_kind(usual, "Deployment", "DaemonSet")
    }
    standing_by = {name for name, probe in asked.items() if probe.get("service") == "standby"}
    assert standing_by == {f"tidegate-{name}" for name in SERVICE_CHARTS} - {
        "tidegate-admission",
        "tidegate-inference-gateway",
        "tidegate-node-agent",
    }
    replicas = {item["metadata"]["name"]: item["spec"]["replicas"] for item in of_kind(usual, "Deployment")}
    assert {name for name, count in replicas.items() if count != 2} == set()


def test_replicas_have_names_of_their_own(usual: list[Manifest]) -> None:
    for name in ("tidegate-cluster-gateway", "tidegate-gang-scheduler"):
        assert arguments(usual, name)["holder"] == "$(POD_NAME)"


def test_every_pod_has_a_network_policy_that_opens_no_more_than_it_serves(usual: list[Manifest]) -> None:
    for item in of_kind(usual, "Deployment", "StatefulSet", "DaemonSet"):
        policy = named(usual, "NetworkPolicy", item["metadata"]["name"])
        assert policy["spec"]["podSelector"] == item["spec"]["selector"]
        assert sorted(policy["spec"]["policyTypes"]) == ["Egress", "Ingress"]
    bus = named(usual, "NetworkPolicy", "tidegate-nats")["spec"]["ingress"]
    assert all(rule["from"] for rule in bus)
    leaving = [
        (item["metadata"]["name"], rule) for item in of_kind(usual, "NetworkPolicy") for rule in item["spec"]["egress"]
    ]
    talking = {name for name, rule in leaving if any(port["port"] == 6443 for port in rule.get("ports", ()))}
    assert talking == {"tidegate-admission", "tidegate-cluster-gateway"}
    at_any_port = [(name, list(one)) for name, rule in leaving if "ports" not in rule for one in rule["to"]]
    assert at_any_port == [("tidegate-inference-gateway", ["namespaceSelector"])], "replicas choose theirs themselves"


def test_flags_are_settings_of_the_service(usual: list[Manifest]) -> None:
    for service in SERVICE_CHARTS:
        settings = importlib.import_module(f"{service.replace('-', '_')}.main").Settings
        given = {name.replace("-", "_") for name in arguments(usual, f"tidegate-{service}")}
        assert given <= set(settings.__dataclass_fields__), service


def test_what_admission_fills_in_is_empty_in_the_chart(usual: list[Manifest]) -> None:
    """Helm owns the objects, so that they go with the release; it owns nothing in them, so that upgrades change nothing."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert "webhooks" not in named(usual, kind, "tidegate-admission")
    assert not {"data", "stringData"} & named(usual, "Secret", "tidegate-admission-tls").keys()


def test_users_reach_the_api_over_tls_alone(usual: list[Manifest]) -> None:
    service = named(usual, "Service", "tidegate-admission")["spec"]
    assert {one["name"] for one in service["ports"]} == {"api", "metrics", "webhook"}
    given = arguments(usual, "tidegate-admission")
    assert (given["access"], given["api-port"], given["unreviewed-users"]) == (
        "cluster",
        "7443",
        f"system:serviceaccount:{NAMESPACE}:tidegate-cluster-gateway",
    )
    assert f"tidegate-admission.{NAMESPACE}.svc" in given["api-names"].split(",")


def test_cert_manager_may_make_the_certificate(helm: Helm) -> None:
    objects = helm.template("tidegate", {"admission": {"certManager": {"enabled": True}}})
    made = named(objects, "Certificate", "tidegate-admission")["spec"]
    given = arguments(objects, "tidegate-admission")
    assert set(given["api-names"].split(",")) | {"localhost"} == set(made["dnsNames"])
    assert given["inject-ca-from"] == f"{NAMESPACE}/tidegate-admission"
    (spec,) = [spec for name, spec in pods(objects) if name == "tidegate-admission"]
    assert {"name": "tls", "secret": {"secretName": made["secretName"], "defaultMode": 0o440}} in spec["volumes"]
    rules = [rule for role in of_kind(objects, "Role", "ClusterRole") for rule in role["rules"]]
    assert not any("tidegate-admission-tls" in rule.get("resourceNames", ()) for rule in rules)


def test_options_bring_monitors_where_the_cluster_has_such_and_a_dashboard(helm: Helm, usual: list[Manifest]) -> None:
    assert not of_kind(helm.template("tidegate", OPTIONS), "ServiceMonitor")
    objects = helm.template("tidegate", OPTIONS, *WITH_OPERATOR)
    assert len(of_kind(objects, "ServiceMonitor")) == len(SERVICE_CHARTS)
    for monitor in of_kind(objects, "ServiceMonitor"):
        service = named(objects, "Service", monitor["metadata"]["name"])
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert {one["port"] for one in monitor["spec"]["endpoints"]} <= {
            one["name"] for one in service["spec"]["ports"]
        }
    assert named(objects, "ConfigMap", "tidegate-dashboard")["data"]["tidegate.json"]
    assert not of_kind(usual, "ServiceMonitor", "ConfigMap")


def test_large_numbers_and_parts_reach_the_service_as_it_reads_them(helm: Helm) -> None:
    gateway = helm.template("cluster-gateway", {**ALONE, "settings": {"snapshotEntries": 5_000_000}})
    assert arguments(gateway, "tidegate-cluster-gateway")["snapshot-entries"] == "5000000"
    kueue = {"waitForPodsReady": {"timeout": "5m"}}
    manager = helm.template("queue-manager", {**ALONE, "settings": {"kueue": kueue}})
    assert yaml.safe_load(arguments(manager, "tidegate-queue-manager")["kueue"]) == kueue


def test_versions_are_those_of_the_product(helm: Helm) -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    for chart in (*SERVICE_CHARTS, "nats", "tidegate"):
        written: Any = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
        assert (written["version"], written["appVersion"]) == (project["version"], project["version"])
    images = {container["image"] for _, spec in pods(helm.template("tidegate")) for container in spec["containers"]}
    assert images == {f"tidegate/{name}:{project['version']}" for name in (*SERVICE_CHARTS, "nats")}


def test_the_namespace_may_enforce_the_restricted_profile_without_the_node_agent(helm: Helm) -> None:
    objects = helm.template("tidegate", {"node-agent": {"enabled": False}})
    assert not of_kind(objects, "DaemonSet")
    assert {item["metadata"].get("namespace", NAMESPACE) for item in objects} == {NAMESPACE}


SERVED = {"admission": {"metricsApis": {"custom": True, "external": True}}}


def test_metrics_are_served_where_they_are_asked_for_and_nowhere_else(helm: Helm, usual: list[Manifest]) -> None:
    """A cluster may have another server for them."""
    assert not of_kind(usual, "APIService")
    objects = helm.template("tidegate", SERVED)
    told = {item["metadata"]["name"]: item["spec"] for item in of_kind(objects, "APIService")}
    assert sorted(told) == [
        "v1beta1.custom.metrics.k8s.io",
        "v1beta1.external.metrics.k8s.io",
        "v1beta2.custom.metrics.k8s.io",
    ]
    given = arguments(objects, "tidegate-admission")
    assert given["metrics-apis"] == "custom,external"
    for spec in told.values():
        assert spec["service"]["name"] == given["webhook-service"] == "tidegate-admission"
        service = named(objects, "Service", spec["service"]["name"])
        ports = {port["port"]: port["targetPort"] for port in service["spec"]["ports"]}
        assert ports[spec["service"]["port"]] == "metrics-api"
    one = helm.template("tidegate", {"admission": {"metricsApis": {"external": True}}})
    assert [item["spec"]["group"] for item in of_kind(one, "APIService")] == ["external.metrics.k8s.io"]


def test_sources_of_samples_are_reached_where_there_are_some(helm: Helm, usual: list[Manifest]) -> None:
    def goes_anywhere(objects: Sequence[Manifest]) -> bool:
        return {} in named(objects, "NetworkPolicy", "tidegate-inference-autoscaler")["spec"]["egress"]

    asked = helm.template(
        "tidegate", {"inference-autoscaler": {"settings": {"sampling": {"prometheus": "http://p:9090"}}}}
    )
    assert goes_anywhere(asked) and not goes_anywhere(usual)
    assert (
        arguments(asked, "tidegate-inference-autoscaler")["sampling"] == '{"prometheus":"http://p:9090","scrape":false}'
    )


def test_pods_of_models_get_their_images_from_where_the_services_do(helm: Helm, usual: list[Manifest]) -> None:
    there = helm.template("tidegate", {"global": {"imageRegistry": "registry.test/mirror"}})
    assert arguments(there, "tidegate-inference-autoscaler")["image-registry"] == "registry.test/mirror"
    assert "image-registry" not in arguments(usual, "tidegate-inference-autoscaler")
