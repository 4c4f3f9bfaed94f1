"""Whatever happens: nobody is evicted in vain or twice, the books stay right, and it all comes to rest."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from kube import Event, Verb

QUIET = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "gang", "gone", "gone", "finish", "restart", "later"]),
        st.integers(0, 2),
        st.integers(1, 3),
        st.sampled_from(["qa", "qb"]),
        st.integers(0, 99),
    ),
    min_size=3,
    max_size=14,
)


@QUIET
@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), STEPS, st.integers(0, 6))
def test_evictions_are_never_in_vain(new_toy: Any, sizes: list[int], steps: Any, deserved: int) -> None:
    toy = new_toy(lingering=True)
    total = sum(sizes)
    toy.queues = {
        "qa": {"deserved": {"cpu": min(deserved, total)}, "capability": {"cpu": total}},
        "qb": {"deserved": {"cpu": max(0, total - deserved)}, "guarantee": {"cpu": 1}},
    }
    for index, size in enumerate(sizes):
        toy.node(f"n{index}", cpu=size)
    promised: dict[str, set[str]] = {}
    for number, step in enumerate(steps):
        act(toy, number, *step)
        for decision in toy.settle():
            victims = {m.key.name for m in decision.mutations if m.verb is Verb.EVICT}
            if victims:
                promised[decision.subject.name] = victims
    assert len(toy.evicted) == len(set(toy.evicted))
    while leaving(toy):
        toy.gone(*leaving(toy))
        for decision in toy.settle():
            victims = {m.key.name for m in decision.mutations if m.verb is Verb.EVICT}
            if victims:
                promised[decision.subject.name] = victims
    for name in promised:
        members = [
            pod for pod in toy.store.of_kind("Pod").values() if pod.name == name or pod.name.startswith(f"{name}-")
        ]
        if any(pod.deleting or pod.name in toy.evicted for pod in members) or any(
            gone.startswith(f"{name}-") for gone in toy.evicted
        ):
            continue  # It was a victim itself afterwards.
        assert not members or any(pod.spec.get("nodeName") for pod in members), f"{name} had others evicted and waits"
    assert not toy.core.claims.promises


def act(toy: Any, number: int, what: str, priority: int, cpu: int, queue: str, pick: int) -> None:
    """One thing happens."""
    match what:
        case "pod":
            toy.pods(f"p{number}", cpu=cpu, priority=priority, queue=queue)
        case "gang":
            toy.group(f"g{number}", cpu, queue=queue)
            toy.pods(f"g{number}-x", cpu=1, priority=priority, group=f"g{number}")
            for index in range(cpu):
                toy.pods(f"g{number}-{index}", cpu=1, priority=priority, group=f"g{number}")
        case "gone":
            found = leaving(toy)
            if found:
                toy.gone(found[pick % len(found)])
        case "finish":
            found = [name for name in toy.bound() if toy.pod(name).status["phase"] == "Running"]
            if found and not toy.pod(found[pick % len(found)]).deleting:
                toy.finish(found[pick % len(found)])
        case "later":
            toy.now += pick * 10_000
        case "restart":
            remembered = toy.core.remember()
            again = SchedulerCore()
            if remembered:
                again.restore(remembered)
            toy.core = again
            toy.fold([Event(None, item) for item in toy.store.objects.values()])
            toy.entitle()


def leaving(toy: Any) -> list[str]:
    """The pods that are being deleted."""
    return sorted(pod.name for pod in toy.store.of_kind("Pod").values() if pod.deleting)
