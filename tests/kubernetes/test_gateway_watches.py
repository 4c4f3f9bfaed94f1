"""What the gateway knows of an API server whose watches break, which forgets, or which is put back: all, and nothing invented."""

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_sides import KubernetesSide
from cluster_tools import DEFINITIONS, define, eventually
from control_plane import ControlPlane, control_plane
from fault_proxy import FaultProxy, fault_proxy
from lab_programs import NoLab

from cluster_gateway.kubernetes import reflector, watching
from kube import KINDS, Decision, Mutation, Verb
from tidegate.codec import facts

QUOTA = "ElasticQuota.scheduling.sigs.k8s.io"
GROUP = "PodGroup.scheduling.volcano.sh"
NEEDED = ("Job.batch.volcano.sh", GROUP, "Queue.scheduling.volcano.sh")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of these tests alone: it is killed, and put back."""
    try:
        with control_plane(tmp_path_factory.mktemp("bare"), kwok=False) as made:
            define(made, NEEDED)
            yield made
    except NoLab as error:
        pytest.skip(str(error))


@pytest.fixture
def proxy(bare: ControlPlane, tmp_path: Path) -> Iterator[FaultProxy]:
    with fault_proxy(bare, tmp_path) as made:
        yield made


@pytest.fixture
async def side(bare: ControlPlane, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesSide]:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.5)
    monkeypatch.setattr(watching, "PAUSE", 0.2)
    monkeypatch.setattr(reflector, "LONGEST_PAUSE", 0.5)
    kinds = frozenset(("Pod", "Node", "Namespace", "ConfigMap", QUOTA, *NEEDED))
    made = KubernetesSide(next(_numbers), bare, proxy.address, kinds)
    await made.start()
    yield made
    await made.close()


def pod(name: str) -> Any:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}


def make(side: KubernetesSide, *names: str) -> None:
    for name in names:
        side.ask("POST", f"/api/v1/namespaces/{side.namespace}/pods", pod(name))


def remove(side: KubernetesSide, name: str) -> None:
    side.ask("DELETE", f"/api/v1/namespaces/{side.namespace}/pods/{name}")


def removed(side: KubernetesSide, after: int = 0) -> list[str]:
    """The pods that the facts ever told as gone behind a revision."""
    before = side.store_at(after)
    gone = []
    for sequence, message in enumerate(side.change_sets()[after:], after + 1):
        events = facts.fold(before, message, sequence)
        gone += [event.key.name for event in events if event.new is None and event.key.namespace == side.namespace]
    return gone


async def in_thread(work: Callable[[], Any]) -> Any:
    """The gateway goes on while the test waits."""
    return await asyncio.to_thread(work)


async def test_a_watch_that_is_cut_in_the_middle_of_an_object_loses_nothing(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    for turn in range(5):
        make(side, f"a{turn}", f"b{turn}")
        assert proxy.cut_watches() > 0
        remove(side, f"a{turn}")
        await side.until(lambda turn=turn: side.find("Pod", f"b{turn}"))

    await side.until(lambda: side.names("Pod") == [f"b{turn}" for turn in range(5)])

    assert sorted(removed(side)) == [f"a{turn}" for turn in range(5)]


async def test_a_server_that_forgot_the_version_is_listed_and_nothing_is_invented_or_lost(
    side: KubernetesSide, bare: ControlPlane
) -> None:
    make(side, "stays", "goes")
    await side.until(lambda: side.names("Pod") == ["goes", "stays"])
    await side.kill()
    remove(side, "goes")
    make(side, "comes")
    seen, before = side.revision, side.get("Pod", "stays").revision
    bare.kill("kube-apiserver")
    bare.start_again("kube-apiserver")
    await in_thread(bare.wait_ready)

    await side.start()

    await side.until(lambda: side.names("Pod") == ["comes", "stays"])
    assert removed(side, seen) == ["goes"]
    assert side.get("Pod", "stays").revision == before


async def test_a_server_that_is_killed_and_starts_again_invents_no_deletions(
    side: KubernetesSide, bare: ControlPlane
) -> None:
    """While it starts it does not know yet of all kinds that it has."""
    make(side, "a")
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {}}
    side.ask("POST", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{side.namespace}/podgroups", group)
    await side.until(lambda: side.names(GROUP) == ["g"] and side.names("Pod") == ["a"])
    seen = side.revision

    for turn in range(3):
        bare.kill("kube-apiserver")
        bare.start_again("kube-apiserver")
        await in_thread(bare.wait_ready)
        make(side, f"late{turn}")
        await side.until(lambda turn=turn: side.find("Pod", f"late{turn}"))

    await asyncio.sleep(1.0)
    assert removed(side, seen) == []
    assert side.names(GROUP) == ["g"]


async def test_a_kind_that_we_may_not_see_for_a_while_keeps_its_objects(
    side: KubernetesSide, proxy: FaultProxy
) -> None:
    make(side, "a")
    await side.until(lambda: side.names("Pod") == ["a"])
    fault = proxy.add("GET /api/v1/pods", code=403, message="pods are not for you")
    proxy.cut_watches()
    make(side, "b")
    await side.until(lambda: fault.met > 2)
    assert side.names("Pod") == ["a"]

    proxy.faults.clear()

    await side.until(lambda: side.names("Pod") == ["a", "b"])
    assert removed(side) == []


async def test_a_kind_that_is_defined_later_is_followed_and_its_end_is_the_end_of_its_objects(
    side: KubernetesSide, bare: ControlPlane
) -> None:
    info = KINDS[QUOTA]
    quota = {"apiVersion": info.api_version, "kind": "ElasticQuota", "metadata": {"name": "q"}, "spec": {}}
    for _ in range(2):
        assert side.names(QUOTA) == []

        await in_thread(lambda: define(bare, (QUOTA,)))
        side.ask("POST", f"/apis/{info.api_version}/namespaces/{side.namespace}/{info.plural}", quota)
        await side.until(lambda: side.names(QUOTA) == ["q"])

        side.ask("DELETE", f"{DEFINITIONS}/{info.plural}.{info.group}")
        await side.until(lambda: side.names(QUOTA) == [])
        await in_thread(lambda: eventually(lambda: not _is_defined(side, info.plural, info.group)))


def _is_defined(side: KubernetesSide, plural: str, group: str) -> bool:
    found = side.ask("GET", DEFINITIONS)["items"]
    return any(item["metadata"]["name"] == f"{plural}.{group}" for item in found)


async def test_a_cluster_that_was_put_back_to_an_older_state_is_known_as_it_was_then(
    side: KubernetesSide, bare: ControlPlane
) -> None:
    """Its versions are smaller than those that were seen: waiting for greater ones would be waiting for long."""
    make(side, "both", "back")
    node = await side.node("n")
    await side.until(lambda: side.names("Pod") == ["back", "both"])
    copy = bare.folder / "etcd-copy"
    bare.kill("etcd")
    shutil.copytree(bare.folder / "etcd", copy)
    bare.start_again("etcd")
    await in_thread(bare.wait_ready)
    both = side.get("Pod", "both")
    mutation = Mutation(Verb.BIND, both.key, both.uid, node=node)
    (outcome,) = await side.decide("gang_scheduler", Decision("GangPlaced", both.key, both.uid, mutations=(mutation,)))
    assert outcome.applied
    remove(side, "back")
    make(side, *(f"later{n}" for n in range(5)))
    await side.until(lambda: "later4" in side.names("Pod") and "back" not in side.names("Pod"))

    for program in ("kube-apiserver", "etcd"):
        bare.kill(program)
    shutil.rmtree(bare.folder / "etcd")
    copy.rename(bare.folder / "etcd")
    for program in ("etcd", "kube-apiserver"):
        bare.start_again(program)
    await in_thread(bare.wait_ready)

    await side.until(lambda: side.names("Pod") == ["back", "both"])
    assert "nodeName" not in side.get("Pod", "both").spec
    make(side, "new")
    await side.until(lambda: side.names("Pod") == ["back", "both", "new"])
