"""Limits, cards, users, names and volumes of containers, computed from manifests."""

from typing import Any

import pytest

from kube.devices import device_variables, visible_devices
from kube.environment import Missing, Sources
from node_agent.domain.identity import IdentityRefused, RunAs, free_user_id, host_name, hosts_file, run_as
from node_agent.domain.limits import Limits, container_limits, pod_limits
from node_agent.domain.volumes import Mount, Origin, UnsupportedVolume, mounts, variable_name, volumes


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, Limits()),
        ({"limits": {"cpu": "500m", "memory": "1Gi"}}, Limits(500, 500, 1 << 30)),
        ({"limits": {"cpu": 2}, "requests": {"cpu": "100m"}}, Limits(2000, 100)),
        ({"requests": {"kubernetes.io/batch-cpu": 1500}, "limits": {"kubernetes.io/batch-memory": "2Gi"}}, Limits(None, 1500, 2 << 30)),
        ({"limits": {"cpu": "much"}}, Limits()),
    ],
)  # fmt: skip
def test_limits_are_read_from_ordinary_and_batch_resources(resources: Any, expected: Limits) -> None:
    assert container_limits({}, {"resources": resources}) == expected


def test_a_pod_is_limited_only_where_each_of_its_containers_is() -> None:
    found = pod_limits({}, [Limits(500, 100, 1 << 20), Limits(None, 200, 1 << 20)], pids=50)
    assert found == Limits(None, 300, 2 << 20, 50)


@pytest.mark.parametrize(
    ("milli", "shares", "weight"), [(0, 2, 1), (100, 102, 4), (1000, 1024, 39), (2, 2, 1), (512_000, 262_144, 10_000)]
)
def test_weights_are_those_of_a_kubelet(milli: int, shares: int, weight: int) -> None:
    limits = Limits(cpu_request_milli=milli)
    assert (limits.shares, limits.weight) == (shares, weight)


def test_a_quota_is_never_below_a_millisecond() -> None:
    assert (Limits(cpu_milli=1).quota_us, Limits(cpu_milli=1500).quota_us, Limits().quota_us) == (1000, 150_000, None)


def test_a_pod_with_cpus_of_its_own_has_no_quota() -> None:
    """It would only be throttled on CPUs that nobody else uses."""
    container = {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}
    pod = {"metadata": {"annotations": {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1"}'}}}
    own, usual = container_limits(pod, container), container_limits({}, container)
    assert (own.quota_us, own.cpu_request_milli) == (None, 2000)
    assert usual.quota_us == 200_000
    assert pod_limits(pod, [own], 10).quota_us is None


def test_the_schedulers_cpu_set_is_read() -> None:
    pod = {"metadata": {"annotations": {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1,4"}'}}}
    assert container_limits(pod, {}).cpu_set == "0-1,4"


def pod_with_cards(cards: str, *counts: int | None) -> Any:
    boxes = [
        {"name": f"c{index}", "resources": {} if count is None else {"limits": {"nvidia.com/gpu": count}}}
        for index, count in enumerate(counts)
    ]
    return {"metadata": {"annotations": {"tidegate.dev/devices": cards}}, "spec": {"containers": boxes}}


@pytest.mark.parametrize(
    ("cards", "counts", "seen"),
    [
        ('{"nvidia.com/gpu": [0, 1, 2]}', (1, None, 2), [(0,), (), (1, 2)]),
        ('{"nvidia.com/gpu": [5]}', (None, None), [(5,), (5,)]),
        ('{"nvidia.com/gpu": [1]}', (3, None), [(1,), ()]),
        ("", (1,), [()]),
        ("not json", (1,), [()]),
        ('{"nvidia.com/gpu": null}', (1,), [()]),
    ],
)
def test_the_chosen_cards_are_shared_out_to_the_containers_that_ask(cards: str, counts: Any, seen: Any) -> None:
    pod = pod_with_cards(cards, *counts)
    assert [visible_devices(pod, f"c{index}") for index in range(len(counts))] == seen


def test_a_container_without_cards_sees_none() -> None:
    found = device_variables(pod_with_cards("", 0), "c0")
    assert (found["CUDA_VISIBLE_DEVICES"], found["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")


def test_a_container_runs_as_whom_it_asks_for_else_as_its_pods_own_user() -> None:
    pod = {"spec": {"securityContext": {"runAsUser": 2000, "fsGroup": 3000, "supplementalGroups": [4000]}}}
    assert run_as(pod, {"name": "c"}, 60_000, False) == RunAs(2000, 2000, (3000, 4000))
    assert run_as(pod, {"securityContext": {"runAsUser": 5, "runAsGroup": 1500}}, 60_000, False) == RunAs(
        5, 1500, (3000, 4000)
    )
    assert run_as({}, {}, 60_000, False) == RunAs(60_000, 60_000)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"runAsUser": 0}, "user 0"),
        ({"runAsUser": 2000, "runAsGroup": 0}, "group 0"),
        ({"supplementalGroups": [6]}, "groups \\[6\\]"),
        ({"fsGroup": 0}, "groups \\[0\\]"),
    ],
)
def test_root_and_the_systems_groups_are_refused_with_the_reason(asked: Any, said: str) -> None:
    pod = {"spec": {"securityContext": asked}}
    with pytest.raises(IdentityRefused, match=said):
        run_as(pod, {"name": "c"}, 60_000, allow_root=False)
    run_as(pod, {"name": "c"}, 60_000, allow_root=True)


def test_run_as_non_root_is_kept_on_a_node_that_allows_root() -> None:
    with pytest.raises(IdentityRefused, match="runAsNonRoot"):
        run_as({}, {"securityContext": {"runAsUser": 0, "runAsNonRoot": True}}, 1, allow_root=True)


def test_each_pod_has_a_user_of_its_own_while_there_are_any() -> None:
    assert free_user_id((10, 12), {10, 12}) == 11
    assert 10 <= free_user_id((10, 12), {10, 11, 12}) <= 12


def test_a_hosts_file_names_the_pod_and_its_peers() -> None:
    pod = {
        "metadata": {"name": "w-0", "namespace": "ns"},
        "spec": {"hostname": "w-0", "subdomain": "job", "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["db"]}]},
        "status": {"podIP": "127.1.0.1"},
    }
    text = hosts_file(pod, [("127.1.0.2", ("w-1", "w-1.job")), ("127.1.0.3", ())])
    assert "127.1.0.1\tw-0.job.ns.svc.cluster.local\tw-0" in text
    assert text.endswith("10.0.0.1\tdb\n127.1.0.2\tw-1\tw-1.job\n")
    assert host_name({"metadata": {"name": "x" * 62 + "-yz"}}) == "x" * 62


def test_volumes_are_made_of_what_they_name() -> None:
    sources = Sources({"ns/c": {"a": "1", "b": "2"}}, {"ns/s": {"k": b"\x00"}})
    pod = {
        "metadata": {"namespace": "ns", "name": "p", "labels": {"x": 'q"'}},
        "spec": {
            "volumes": [
                {"name": "all", "configMap": {"name": "c"}},
                {"name": "one", "configMap": {"name": "c", "items": [{"key": "a", "path": "../d/f", "mode": 256}]}},
                {"name": "key", "secret": {"secretName": "s", "defaultMode": 384}},
                {
                    "name": "mix",
                    "projected": {
                        "sources": [
                            {"configMap": {"name": "gone", "optional": True}},
                            {"secret": {"name": "s"}},
                            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                            {"serviceAccountToken": {"path": "token"}},
                        ]
                    },
                },
                {"name": "none", "configMap": {"name": "gone"}},
                {"name": "keyless", "secret": {"secretName": "s", "items": [{"key": "z", "path": "z"}]}},
                {"name": "pvc", "persistentVolumeClaim": {"claimName": "d"}},
                {"name": "host", "hostPath": {"path": "/data"}},
                {"name": "tmp", "emptyDir": {}},
            ]
        },
    }
    found = {volume.name: volume for volume in volumes(pod, sources)}
    contents = {name: [(file.path, file.content, file.mode) for file in one.files] for name, one in found.items()}
    assert contents["all"] == [("a", b"1", 0o644), ("b", b"2", 0o644)]
    assert contents["one"] == [("d/f", b"1", 0o400)]
    assert contents["key"] == [("k", b"\x00", 0o600)]
    assert contents["mix"] == [("k", b"\x00", 0o644), ("l", b'x="q\\""', 0o644)]
    assert found["none"].missing == (Missing("ConfigMap", "ns/gone"),)
    assert found["keyless"].missing == (Missing("Secret", "ns/s", "z"),)
    assert [found[name].origin for name in ("pvc", "host", "tmp")] == [Origin.CLAIM, Origin.HOST, Origin.EMPTY]


def test_an_unknown_kind_of_volume_is_refused_by_its_field() -> None:
    pod = {"spec": {"volumes": [{"name": "n", "nfs": {"server": "s"}}]}}
    with pytest.raises(UnsupportedVolume, match=r"spec.volumes\[0\] \(n\) is of the kind nfs"):
        volumes(pod, Sources())


def test_outer_mounts_come_before_inner_ones() -> None:
    given = {"volumeMounts": [{"name": "b", "mountPath": "/a/b/"}, {"name": "a", "mountPath": "a", "readOnly": True}]}
    assert mounts(given) == (Mount("a", "/a", read_only=True), Mount("b", "/a/b"))
    assert variable_name("my-conf.d") == "TIDEGATE_VOLUME_MY_CONF_D"
