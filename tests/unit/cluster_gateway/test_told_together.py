"""Decisions of one commit that end at about the same time are told at one time; nobody waits long for the others."""

import asyncio

from cluster_gateway.kubernetes.carrier import Carried
from cluster_gateway.kubernetes.together import MOMENT_SECONDS, Together
from kube import Decision, Key, Outcome


def carried(name: str, sequence: int = 7) -> Carried:
    key = Key("PodGroup.scheduling.volcano.sh", "default", name)
    return Carried(
        "queue_manager", sequence, Decision("GroupAdmitted", key), Outcome(name, "", key, True), (), lambda: None
    )


async def test_what_ends_within_a_moment_is_told_at_one_time() -> None:
    told: list[Carried] = []
    together = Together(told.append)
    together.began("queue_manager", 7, 2)
    first, second = carried("a"), carried("b")

    together.ended(first)
    assert told == []
    together.ended(second)
    assert told == [first, second]


async def test_nobody_waits_for_the_others_for_more_than_a_moment() -> None:
    told: list[Carried] = []
    together = Together(told.append)
    together.began("queue_manager", 7, 3)
    first, second, third = carried("a"), carried("b"), carried("c")

    together.ended(first)
    await asyncio.sleep(2 * MOMENT_SECONDS)
    assert told == [first]
    together.ended(second)
    assert told == [first]
    together.ended(third)
    assert told == [first, second, third]
    await asyncio.sleep(2 * MOMENT_SECONDS)
    assert told == [first, second, third]


async def test_a_decision_by_itself_and_another_commit_s_wait_for_nobody() -> None:
    told: list[Carried] = []
    together = Together(told.append)
    together.began("queue_manager", 7, 2)
    together.began("queue_manager", 8, 1)
    alone = carried("c", 8)

    together.ended(carried("a"))
    together.ended(alone)
    assert told == [alone]


async def test_what_is_seen_meanwhile_waits_for_all_of_a_commit_but_for_a_moment_only() -> None:
    together = Together(lambda _: None)
    together.began("queue_manager", 7, 2)
    waiting = asyncio.create_task(together.settle())
    together.ended(carried("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    together.ended(carried("b"))
    await asyncio.wait_for(waiting, MOMENT_SECONDS / 2)

    together.began("queue_manager", 8, 2)
    began = asyncio.get_running_loop().time()
    await together.settle()
    assert asyncio.get_running_loop().time() - began >= MOMENT_SECONDS / 2
    await asyncio.wait_for(together.settle(), MOMENT_SECONDS / 2)


async def test_for_a_decision_by_itself_nothing_waits() -> None:
    together = Together(lambda _: None)
    together.began("queue_manager", 7, 1)
    await asyncio.wait_for(together.settle(), MOMENT_SECONDS / 2)
