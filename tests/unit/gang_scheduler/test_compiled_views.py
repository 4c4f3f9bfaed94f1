"""Views brought up to date by compiled code: the same as in vectors to the last bit, and nothing waits for the compiler."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.columns import jit
from gang_scheduler.domain.columns.compiled import Compiled
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.room.shape_view import ShapeView
from gang_scheduler.domain.score.foresight import FIRST_LOOK
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.kernels import BackgroundKernels

QUIET = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CORE, RATIO, MEMORY = (f"koordinator.sh/gpu-{name}" for name in ("core", "memory-ratio", "memory"))
VGPU, VMEMORY, VCORES = (f"volcano.sh/vgpu-{name}" for name in ("number", "memory", "cores"))
SHARES = st.integers(1, 100).map(lambda percent: {CORE: percent, RATIO: percent})
NEEDS = st.one_of(
    st.just({}),
    SHARES,
    st.sampled_from([1, 2, 4, 8]).map(lambda cards: {CORE: 100 * cards, RATIO: 100 * cards}),
    st.tuples(st.integers(1, 60), st.integers(1, 40)).map(lambda of: {CORE: of[0], MEMORY: f"{of[1]}Gi"}),
    st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(0, 50)).map(
        lambda of: {VGPU: of[0], VMEMORY: 1024 * of[1], VCORES: of[2]}
    ),
)
PODS = st.tuples(NEEDS, st.integers(1, 12), st.sampled_from(["", "a", "b"]))
NODES = st.tuples(st.sampled_from([0, 1, 2, 4, 8]), st.integers(4, 96), st.sampled_from(["a", "b"]), st.booleans())


@pytest.fixture(scope="session")
def kernels() -> BackgroundKernels:
    """The kernel, compiled."""
    found = BackgroundKernels()
    found.join()
    return found


def play(toy: Any, nodes: list[Any], pods: list[Any]) -> None:
    """Pods come one after the other; some end, and nodes change their model."""
    toy.checks = False
    toy.node("n", cpu=64, memory="256Gi", labels={"model": "a"}, **{CORE: 800, RATIO: 800})
    for number, (cards, cpu, model, virtual) in enumerate(nodes):
        has = {VGPU: 10 * cards, VMEMORY: 16384 * cards, VCORES: 100 * cards} if virtual else {}
        has = has or {CORE: 100 * cards, RATIO: 100 * cards, MEMORY: f"{16 * cards}Gi"}
        toy.node(f"m{number}", cpu=cpu, memory="256Gi", labels={"model": model}, **(has if cards else {}))
    first = [({CORE: 20, RATIO: 20}, 1 + number % 3, "") for number in range(2 * FIRST_LOOK)]
    for number, (need, cpu, model) in enumerate(first + pods):
        requests = {"cpu": cpu, "memory": f"{2 * cpu}Gi", **need}
        toy.pods(f"p{number}", 1, requests=requests, **({"nodeSelector": {"model": model}} if model else {}))
        toy.settle()
        if number % 5 == 4 and toy.where(f"p{number - 2}"):
            toy.finish(f"p{number - 2}")


@given(nodes=st.lists(NODES, max_size=8), pods=st.lists(PODS, max_size=16))
@QUIET
def test_compiled_code_finds_the_same_copies_and_keys_as_vectors(
    new_toy: Any, kernels: BackgroundKernels, nodes: Any, pods: Any
) -> None:
    plain, compiled = new_toy(), new_toy(core=SchedulerCore(kernels=kernels))
    for toy in (plain, compiled):
        play(toy, nodes, pods)
    assert plain.core.remember() == compiled.core.remember()
    rooms = [toy.core.cluster.room for toy in (plain, compiled)]
    for shapes in zip(*(room.foresight.census.counts for room in rooms), strict=True):
        kept = [room.views.of(shape) for room, shape in zip(rooms, shapes, strict=True)]
        kernel = kernels if rooms[1].foresight.version else BackgroundKernels
        fresh = ShapeView(shapes[1], rooms[1].table, Placement.BINPACK, rooms[1].foresight, kernel).sync()
        for view in (kept[1], fresh):
            assert view.total == kept[0].total
            assert (view.copies == kept[0].copies).all()
            assert (view.keys == kept[0].keys).all()


def test_the_kernel_serves_where_pods_to_come_decide(new_toy: Any, kernels: BackgroundKernels) -> None:
    renewed, served = [], []

    def counting() -> Compiled:
        compiled = kernels()
        assert compiled is not None
        return compiled._replace(
            renew=lambda slots, *rest: renewed.append(len(slots)) or compiled.renew(slots, *rest),
            serve=lambda sizes, shares: served.append(len(sizes)) or compiled.serve(sizes, shares),
        )

    toy = new_toy(core=SchedulerCore(kernels=counting))
    play(toy, [], [({CORE: 47, RATIO: 47}, 2, "")])
    assert toy.core.cluster.room.foresight.version and sum(renewed) > 0 and sum(served) > 0


def test_nobody_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = BackgroundKernels()
    monkeypatch.setattr(kernels, "_make", lambda: None)
    assert kernels() is None


def test_a_kernel_is_compiled_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = jit.njit

    def njit(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return whole(**options)

    monkeypatch.setattr(jit, "njit", njit)
    assert jit.jit()(lambda number: number + 1)(np.int64(1)) == 2


def test_a_service_starts_without_the_compiler() -> None:
    code = "import sys, gang_scheduler.main, gang_scheduler.domain.core; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
