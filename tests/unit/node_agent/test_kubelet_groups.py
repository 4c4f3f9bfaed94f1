"""A kubelet's pods are found by their control groups, whichever driver and version it uses."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from node_agent.domain.pod_cgroups import Driver, class_folders, container_of, pod_of
from node_agent.domain.usage import Consumption
from node_agent.kubelet.pod_groups import NoGroups, PodGroups, consumptions, find_groups

UIDS = tuple(f"{digit * 8}-0fda-4b1a-9f6e-{digit * 12}" for digit in "123")
STATIC = "0a1b2c3d" * 4
SANDBOX, MAIN = "a" * 64, "b" * 64


def cgroupfs(uid: str, qos: str, container: str) -> str:
    return f"kubepods{qos and '/' + qos}/pod{uid}/{container}"


def systemd(uid: str, qos: str, container: str) -> str:
    middle = f"kubepods-{qos}.slice/kubepods-{qos}" if qos else "kubepods"
    return f"kubepods.slice/{middle}-pod{uid.replace('-', '_')}.slice/cri-containerd-{container}.scope"


PODS = ((UIDS[0], ""), (UIDS[1], "burstable"), (UIDS[2], "besteffort"), (STATIC, "burstable"))


def tree(mount: Path, version: int, paths: Sequence[str]) -> Path:
    """What is mounted at /sys/fs/cgroup, with these groups."""
    mount.mkdir()
    roots = [mount] if version == 2 else [mount / "cpu,cpuacct", mount / "memory"]
    for root in roots:
        root.mkdir(exist_ok=True)
        for path in paths:
            (root / path).mkdir(parents=True)
    if version == 2:
        (mount / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    else:
        (mount / "cpuacct").symlink_to("cpu,cpuacct")
    return mount


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("path", [cgroupfs, systemd])
def test_pods_of_all_classes_and_their_containers_are_found(tmp_path: Path, version: int, path: object) -> None:
    assert callable(path)
    paths = [path(uid, qos, container) for uid, qos in PODS for container in (SANDBOX, MAIN)]
    strangers = ["kubepods/burstable/volumes", "system.slice/cri-containerd-" + "c" * 64 + ".scope", "kubepods/podless"]

    groups = find_groups(tree(tmp_path / "mount", version, [*paths, *strangers]))
    found = groups.find()

    assert groups.version == version
    assert found.keys() == {uid for uid, _ in PODS}
    assert all(set(group.containers) == {SANDBOX, MAIN} for group in found.values())


def test_a_kubelet_below_another_root_is_found_there() -> None:
    """As ToSystemd and ToCgroupfs of the kubelet name it."""
    assert [str(path) for path in class_folders(Driver.CGROUPFS, "/kubelet")] == [
        "kubelet/kubepods",
        "kubelet/kubepods/burstable",
        "kubelet/kubepods/besteffort",
    ]
    assert [str(path) for path in class_folders(Driver.SYSTEMD, "/k8s-1/kubelet")][:2] == [
        "k8s_1.slice/k8s_1-kubelet.slice/k8s_1-kubelet-kubepods.slice",
        "k8s_1.slice/k8s_1-kubelet.slice/k8s_1-kubelet-kubepods.slice/k8s_1-kubelet-kubepods-burstable.slice",
    ]


@pytest.mark.parametrize(
    ("driver", "folder", "uid"),
    [
        (Driver.CGROUPFS, f"pod{UIDS[0]}", UIDS[0]),
        (Driver.CGROUPFS, f"pod{STATIC}", STATIC),
        (Driver.CGROUPFS, "podcast", ""),
        (Driver.CGROUPFS, "burstable", ""),
        (Driver.SYSTEMD, f"kubepods-burstable-pod{UIDS[0].replace('-', '_')}.slice", UIDS[0]),
        (Driver.SYSTEMD, f"kubelet-kubepods-pod{STATIC}.slice", STATIC),
        (Driver.SYSTEMD, "kubepods-besteffort.slice", ""),
    ],
)
def test_a_pod_is_known_by_the_name_of_its_group(driver: Driver, folder: str, uid: str) -> None:
    assert pod_of(driver, folder) == uid


@pytest.mark.parametrize(
    ("folder", "container"),
    [
        (MAIN, MAIN),
        (f"cri-containerd-{MAIN}.scope", MAIN),
        (f"crio-{MAIN}", MAIN),
        (f"crio-{MAIN}.scope", MAIN),
        (f"docker-{MAIN}.scope", MAIN),
        (f"crio-conmon-{MAIN}.scope", ""),
        ("init.scope", ""),
    ],
)
def test_a_container_is_known_by_the_name_of_its_group(folder: str, container: str) -> None:
    assert container_of(folder) == container


def test_use_is_read_from_the_files_of_version_1(tmp_path: Path) -> None:
    mount = tree(tmp_path / "mount", 1, [cgroupfs(UIDS[0], "", MAIN), cgroupfs(UIDS[1], "burstable", MAIN)])
    pod = f"kubepods/pod{UIDS[0]}"
    (mount / "cpuacct" / pod / "cpuacct.usage").write_text("7000000\n")
    (mount / "memory" / pod / "memory.usage_in_bytes").write_text("9000\n")
    (mount / "memory" / pod / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 4000\n")
    groups = find_groups(mount)

    assert consumptions(groups, groups.find()) == {UIDS[0]: Consumption(7_000_000, 5000)}


def test_use_is_read_from_the_files_of_version_2(tmp_path: Path) -> None:
    mount = tree(tmp_path / "mount", 2, [systemd(UIDS[0], "", MAIN), systemd(UIDS[1], "burstable", MAIN)])
    pod = mount / f"kubepods.slice/kubepods-pod{UIDS[0].replace('-', '_')}.slice"
    (pod / "cpu.stat").write_text("usage_usec 7000\nuser_usec 1\n")
    (pod / "memory.current").write_text("9000\n")
    (pod / "memory.stat").write_text("inactive_file 4000\n")
    groups = find_groups(mount)

    assert consumptions(groups, groups.find()) == {UIDS[0]: Consumption(7_000_000, 5000)}


def test_a_hierarchy_without_controllers_beside_those_of_version_1_is_left_alone(tmp_path: Path) -> None:
    mount = tree(tmp_path / "mount", 1, [])
    (mount / "unified").mkdir()
    (mount / "unified/cgroup.controllers").write_text("\n")
    assert find_groups(mount) == PodGroups(1, mount / "cpuacct", mount / "memory")


def test_a_place_without_control_groups_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(NoGroups, match="mount /sys/fs/cgroup of the machine there"):
        find_groups(tmp_path)
