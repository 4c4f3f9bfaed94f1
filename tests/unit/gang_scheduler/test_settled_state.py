"""What holds once all is settled, whatever came before: nothing is left undone, and the order of independent objects is nothing."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from kube import Event

QUIET = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
MINUTE = 60_000
HOUR = 60 * MINUTE


def succeed(toy: Any) -> None:
    """Another process goes on with what was remembered."""
    remembered = toy.core.remember() or toy.core._remembered
    toy.core = SchedulerCore()
    if remembered:
        toy.core.restore(remembered)
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    toy.entitle()


def test_a_successor_lets_nobody_pass_whose_time_is_over(toy: Any) -> None:
    """``urgent`` is not the head of its queue, so that nothing but its own limit keeps the room."""
    toy.node("n", cpu=4)
    toy.pods("busy", cpu=3, node="n")
    toy.pods("head", cpu=4)
    toy.group("urgent", 2, annotations={"sla-waiting-time": "2m"})
    toy.pods("urgent", 2, cpu=2, group="urgent")
    toy.settle()
    toy.now += 3 * MINUTE
    toy.settle()
    toy.pods("xs", cpu=1)
    succeed(toy)
    toy.settle()
    assert toy.where("xs") == ""


def test_the_end_of_a_reservation_lets_those_ask_again_who_found_no_victims(toy: Any) -> None:
    """What the owner leaves would go back to the reservation; once that is over, it is for whoever takes it."""
    toy.node("n", cpu=2)
    toy.reservation("r", cpu=1, allocateOnce=True)
    toy.settle()
    toy.group("g", 1)
    toy.pods("g-0", group="g", cpu=1, labels={"app": "b"})
    toy.settle()
    toy.pods("owner", cpu=1, labels={"app": "a"})
    toy.pods("large", cpu=2, labels={"app": "b"}, priority=1)
    toy.settle()
    assert toy.where("large") == "n"
    assert sorted(toy.evicted) == ["g-0", "owner"]


UNITS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.sampled_from(["qa", "qb"])),
    min_size=1,
    max_size=7,
)


@QUIET
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), UNITS, UNITS, st.randoms(use_true_random=False))
def test_the_order_in_which_independent_objects_arrive_is_nothing(
    new_toy: Any, sizes: list[int], first: Any, second: Any, chance: Any
) -> None:
    def play(*, shuffled: bool) -> tuple[dict[str, str], list[str]]:
        toy = new_toy(queues={"qa": {"deserved": {"cpu": 4}}, "qb": {"deserved": {"cpu": 4}}})
        steps: list[Any] = [lambda at=at, size=size: toy.node(f"n{at}", cpu=size) for at, size in enumerate(sizes)]
        arrive(steps, chance if shuffled else None)
        for wave, units in (("a", first), ("b", second)):
            made = [
                lambda at=at, unit=unit, wave=wave: come(toy, f"{wave}{at}", *unit) for at, unit in enumerate(units)
            ]
            arrive(made, chance if shuffled else None)
            toy.settle()
        return {pod.name: pod.spec.get("nodeName", "") for pod in toy.store.of_kind("Pod").values()}, sorted(
            toy.evicted
        )

    assert play(shuffled=False) == play(shuffled=True)


def arrive(steps: list[Any], chance: Any) -> None:
    if chance is not None:
        chance.shuffle(steps)
    for step in steps:
        step()


def come(toy: Any, name: str, members: int, cpu: int, priority: int, queue: str) -> None:
    """A gang, or a pod by itself."""
    if members == 1:
        toy.pods(name, cpu=cpu, priority=priority, queue=queue)
        return
    toy.group(name, members, queue=queue)
    toy.pods(f"{name}-m", members, group=name, cpu=cpu, priority=priority)
