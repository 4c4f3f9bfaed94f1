"""The environment of a container, resolved from its pod's manifest."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.environment import Missing, Sources, environment, expand, expand_all, secret_names

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "web"}, "annotations": {"a/b": "note"}},
    "spec": {
        "nodeName": "n",
        "containers": [
            {"name": "main", "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "100Mi"}}},
            {"name": "other", "resources": {"limits": {"memory": "1Gi"}}},
        ],
    },
    "status": {"podIP": "127.1.2.3", "hostIP": "127.0.0.1"},
}
SOURCES = Sources({"ns/c": {"k": "v", "x": "y"}}, {"ns/s": {"pw": b"secret"}}, {"memory": 8 << 30, "cpu": 4000})


def resolve(env: list[Any], env_from: list[Any] | None = None, base: dict[str, str] | None = None) -> Any:
    main = {**POD["spec"]["containers"][0], "env": env, "envFrom": env_from or []}
    pod = {**POD, "spec": {**POD["spec"], "containers": [main, POD["spec"]["containers"][1]]}}
    return environment(pod, "main", SOURCES, base)


def ref(kind: str, **fields: Any) -> list[Any]:
    return [{"name": "V", "valueFrom": {kind: fields}}]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['a/b']", "note"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "n"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.1.2.3"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_fields_of_the_pod_become_variables(path: str, value: str) -> None:
    assert resolve(ref("fieldRef", fieldPath=path)).variables == {"V": value}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "100"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "8"),
        ({"resource": "limits.memory", "divisor": "1Mi", "containerName": "other"}, "1024"),
        ({"resource": "requests.cpu"}, "0"),
    ],
)
def test_resources_are_rounded_up_to_divisors_and_an_open_limit_is_the_nodes(reference: Any, value: str) -> None:
    assert resolve(ref("resourceFieldRef", **reference)).variables == {"V": value}


def test_values_refer_to_earlier_variables_only() -> None:
    env = [{"name": "A", "value": "$(B)"}, {"name": "B", "value": "1"}, {"name": "C", "value": "$(B)$(A)$$(B)"}]
    assert resolve(env).variables == {"A": "$(B)", "B": "1", "C": "1$(B)$(B)"}


def test_later_names_win_over_earlier_ones_and_over_whole_objects() -> None:
    env_from = [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}, "prefix": "S_"}]
    found = resolve([{"name": "k", "value": "own"}, {"name": "Z", "value": "$(x)$(S_pw)$(H)"}], env_from, {"H": "host"})
    assert found.variables == {"H": "host", "k": "own", "x": "y", "S_pw": "secret", "Z": "ysecrethost"}


def test_what_is_missing_is_named_unless_it_is_optional() -> None:
    env = [
        *ref("configMapKeyRef", name="c", key="none"),
        *ref("secretKeyRef", name="none", key="x"),
        *ref("configMapKeyRef", name="none", key="x", optional=True),
        *ref("fieldRef", fieldPath="spec.tolerations"),
    ]
    found = resolve(env, [{"secretRef": {"name": "gone"}}])
    assert found.missing == (
        Missing("Secret", "ns/gone"),
        Missing("ConfigMap", "ns/c", "none"),
        Missing("Secret", "ns/none"),
        Missing("Field", "the pod", "spec.tolerations"),
    )
    assert "ConfigMap ns/c has no key 'none'" in map(str, found.missing)
    assert found.variables == {}


def test_commands_are_expanded_and_unknown_names_stay() -> None:
    assert expand_all(["a=$(A)", "$(N)", "$$(A)", "$", "$(A"], {"A": "1"}) == ["a=1", "$(N)", "$(A)", "$", "$(A"]


@given(st.text(alphabet="ab $()", max_size=30))
def test_a_text_without_dollars_is_never_changed(text: str) -> None:
    plain = text.replace("$", "")
    assert expand(plain, {"a": "x", "b": "y"}) == plain


def test_every_secret_that_a_pod_needs_is_found() -> None:
    pod = {
        "spec": {
            "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "a"}}]}],
            "containers": [{"name": "m", "env": ref("secretKeyRef", name="b", key="k")}],
            "volumes": [
                {"name": "v", "secret": {"secretName": "c"}},
                {"name": "w", "projected": {"sources": [{"secret": {"name": "d"}}, {"configMap": {"name": "no"}}]}},
            ],
        }
    }
    assert secret_names(pod) == ["a", "b", "c", "d"]


def test_a_container_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="no container 'x'"):
        environment(POD, "x")
