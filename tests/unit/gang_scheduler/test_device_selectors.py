"""Expressions that select devices, as drivers and users write them."""

from typing import Any

import pytest

from gang_scheduler.domain.dra.cel import holds
from gang_scheduler.domain.dra.cel_syntax import CelError
from gang_scheduler.domain.dra.slices import Slice, slice_of, usable
from kube import from_manifest

GPU = {
    "name": "gpu-0",
    "attributes": {
        "type": {"string": "gpu"},
        "productName": {"string": "NVIDIA A100-SXM4-80GB"},
        "driverVersion": {"version": "550.54.15"},
        "index": {"int": 3},
        "mig": {"bool": False},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "multiprocessors": {"value": "98"}},
}


def published(*devices: Any, driver: str = "gpu.nvidia.com", **spec: Any) -> Slice:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1, **spec.pop("pool", {})}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": driver, "nodeName": "n1", "pool": pool, "devices": list(devices), **spec},
    }
    found = slice_of(from_manifest(manifest))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("device.driver == 'gpu.nvidia.com'", True),
        ('device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"', True),
        ('device.attributes["gpu.nvidia.com"].type == "mig"', False),
        ('device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*a100.*$")', True),
        ("device.attributes['gpu.nvidia.com'].productName.startsWith('NVIDIA') ? true : false", True),
        ('device.attributes["gpu.nvidia.com"].driverVersion.compareTo(semver("535.0.0")) >= 0', True),
        ('device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("551.0.0"))', False),
        ('device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.nvidia.com"].memory.isLessThan(quantity("80Gi"))', False),
        ('device.attributes["gpu.nvidia.com"].index in [1, 2, 3]', True),
        ('device.attributes["gpu.nvidia.com"].index % 2 == 1 && -1 < 0 && 7 / 2 == 3', True),
        ('!device.attributes["gpu.nvidia.com"].mig', True),
        ('has(device.attributes["gpu.nvidia.com"].uuid)', False),
        ('"type" in device.attributes["gpu.nvidia.com"]', True),
        ('"nobody.example.com" in device.attributes', False),
        ('has(device.attributes["nobody.example.com"].x) || true', True),
        ('device.attributes["nobody.example.com"].x == 1 || device.driver != ""', True),
        ('device.attributes["nobody.example.com"].?x.orValue("none") == "none"', True),
        ('device.attributes["resource.kubernetes.io"].pcieRoot == r"pci0000:00"', True),
        ('cel.bind(gpu, device.attributes["gpu.nvidia.com"], gpu.type == "gpu" && gpu.index > 2)', True),
        ('["A100", "H100"].exists(m, device.attributes["gpu.nvidia.com"].productName.contains(m))', True),
        ("[1, 2, 3].all(n, n < 3) || ([1, 2].map(n, n * 2) == [2, 4])", True),
        ("size(device.driver) == 14 && device.driver.size() == 14", True),
        ("1 == true", False),
    ],
)
def test_an_expression_selects_devices(text: str, true: bool) -> None:
    (device,) = published(GPU).devices
    assert holds(text, {"device": device.scope}) is true


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("device.", "a name is missing before 'the end'"),
        ("device.driver = 1", "unexpected '= 1'"),
        ("(device.driver == ''", "')' is missing"),
        ("device.driver", "not true or false"),
        ("nothing.driver == ''", "there is no nothing"),
        ('device.attributes["x"].y == 1', "there is no 'y'"),
        ("device.driver.reverse() == ''", "there is no function reverse"),
        ("device.driver < 3", "TypeError"),
        ('quantity("many").isInteger()', "many"),
        ('"aaaa".matches("(a+)+$")', "repeats what repeats"),
        ("(" * 5000 + "true" + ")" * 5000, "nested too deeply"),
        ("true && " * 3000 + "true", "longer than"),
    ],
)
def test_what_is_wrong_with_an_expression_is_said(text: str, why: str) -> None:
    (device,) = published(GPU).devices
    with pytest.raises(CelError) as caught:
        holds(text, {"device": device.scope})
    assert why in str(caught.value)


def test_only_the_newest_whole_generation_of_a_pool_counts() -> None:
    old, half = published(GPU), published(GPU, pool={"generation": 2, "resourceSliceCount": 2})
    assert usable([old]) == [old]
    assert usable([old, half]) == []
    assert usable([half, old, half]) == [half, half]


def test_a_slice_that_cannot_be_read_is_none() -> None:
    item = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {}}
    assert slice_of(from_manifest(item)) is None


def test_counters_below_nothing_are_nothing() -> None:
    sets = [{"name": "c", "counters": {"m": {"value": "-1"}}}]
    taking = {**GPU, "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "-5"}}}]}
    found = published(taking, sharedCounters=sets)
    assert found.counters == {"c/m": 0}
    assert found.devices[0].consumes == (("c/m", 0),)
