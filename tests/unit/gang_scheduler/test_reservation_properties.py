"""Reservations among all else that happens: whatever comes, the books balance and rebuilding them gives the same."""

import random
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kube import Key

QUIET = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GPU, RESERVATION = "nvidia.com/gpu", "Reservation.scheduling.koordinator.sh"
AFFINITY = "scheduling.koordinator.sh/reservation-affinity"


def node(toy: Any, draw: random.Random) -> None:
    """A node comes. One that is there stays as it is."""
    name = f"n{draw.randint(0, 3)}"
    if Key("Node", "", name) not in toy.store.objects:
        toy.node(name, cpu=draw.randint(2, 8), **{GPU: draw.randint(0, 4)})


def requests(draw: random.Random) -> dict[str, str]:
    cards = draw.choice([0, 0, 1, 2])
    return {"cpu": str(draw.randint(0, 4))} | ({GPU: str(cards)} if cards else {})


def reserve(toy: Any, draw: random.Random) -> None:
    """A reservation comes, or one of that name changes."""
    toy.reservation(
        f"r{draw.randint(0, 4)}",
        cpu=0,
        labels={"app": draw.choice("ab")},
        allocateOnce=draw.random() < 0.5,
        allocatePolicy=draw.choice(["Aligned", "Restricted"]),
        unschedulable=draw.random() < 0.1,
        ttl=draw.choice(["1h", "0", "24h"]),
        pod={"priority": draw.randint(0, 3), "containers": [{"resources": {"requests": requests(draw)}}]},
    )


def come(toy: Any, draw: random.Random) -> None:
    """A pod or a gang comes; some ask for a reservation."""
    name = f"p{draw.randint(0, 999)}"
    if Key("Pod", "default", name) in toy.store.objects:
        return
    parts: dict[str, Any] = {"labels": {"app": draw.choice("abc")}, "priority": draw.randint(0, 3)}
    parts["annotations"] = {AFFINITY: "{}"} if draw.random() < 0.1 else {}
    parts["requests"] = requests(draw)
    if draw.random() < 0.4:
        size = draw.randint(2, 3)
        toy.group(name, draw.randint(1, size), queue=draw.choice(["default", "q"]))
        toy.pods(name, size, group=name, **parts)
    else:
        toy.pods(name, queue=draw.choice(["", "q"]), **parts)


def go(toy: Any, draw: random.Random) -> None:
    """A pod, a reservation or a node is gone."""
    kind = draw.choice(["Pod", "Pod", "Pod", RESERVATION, "Node"])
    keys = sorted(toy.store.of_kind(kind))
    if keys:
        toy.delete(draw.choice(keys))


def wait(toy: Any, draw: random.Random) -> None:
    toy.now += draw.choice([60_000, 3_600_000, 25 * 3_600_000])


@QUIET
@example(seed=1561, lingering=False)
@example(seed=315430, lingering=False)
@example(seed=1_985_526_616, lingering=True)
@example(seed=7_655_318, lingering=True)  # quota comes back from another node than the one with the room
@given(seed=st.integers(0, 1 << 32), lingering=st.booleans())
def test_whatever_happens_the_books_balance(new_toy: Any, seed: int, lingering: bool) -> None:
    draw, toy = random.Random(seed), new_toy()
    toy.queues, toy.lingering = {"default": {}, "q": {"capability": {"cpu": 9}, "deserved": {"cpu": 2}}}, lingering
    node(toy, draw)
    for _ in range(14):
        draw.choices([reserve, come, go, wait, node], [5, 10, 3, 1, 1])[0](toy, draw)
        toy.settle()
        toy.gone(*(pod.name for pod in list(toy.store.of_kind("Pod").values()) if pod.deleting and draw.random() < 0.7))
        toy.settle()
