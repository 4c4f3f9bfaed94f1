"""The line of one ClusterQueue: who is first, whatever becomes of the shapes of those who wait."""

from hypothesis import given
from hypothesis import strategies as st

from kube import Key
from queue_manager.domain.cohorts.queue_line import QueueLine
from queue_manager.domain.workloads.workload import Constraints, Shape, Workload


def workload(name: str, cpu: int) -> Workload:
    shape = Shape(0, (("cpu", cpu),), Constraints())
    return Workload(Key("Pod", "default", name), "uid", "local", shape, "2026-01-01T00:00:00Z")


def test_who_waits_in_another_shape_than_before_keeps_its_place() -> None:
    line = QueueLine("q")
    line.put(workload("a", 1))
    line.put(workload("b", 5))
    for cpu in (2, 3, 2):
        line.drop(workload("a", cpu).key)
        line.put(workload("a", cpu))
        assert line.head() == workload("a", cpu)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=20))
def test_the_first_of_all_is_the_head_whoever_comes_goes_and_changes(steps: list[tuple[str, int]]) -> None:
    """Nothing of 0 CPUs is left: it goes."""
    line, there = QueueLine("q"), dict[str, Workload]()
    for name, cpu in steps:
        if name in there:
            line.drop(there.pop(name).key)
        if cpu:
            there[name] = workload(name, cpu)
            line.put(there[name])
        assert line.head() == min(there.values(), key=lambda one: one.order, default=None)
