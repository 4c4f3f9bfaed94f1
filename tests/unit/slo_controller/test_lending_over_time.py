"""When what is lent is written: at once where it is less, when it has lasted where it is more, and not at all on old news."""

import json
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Key, rfc3339

MINUTE = 60_000
CPU = "batch-cpu"


def names(decisions) -> list[str]:
    return [decision.name for decision in decisions]


def test_a_node_lends_when_it_has_been_measured_and_says_how_much_and_why(toy) -> None:
    toy.node()
    assert names(toy.settle()) == ["NodeSLOComputed"]
    toy.pod("web", cpu="20")
    toy.use(system=("5", "1G"), web=("10", "1G"))
    (decision,) = toy.settle()
    assert toy.lent(CPU) == 45_000 and toy.lent("batch-memory") == 63 * 10**9
    words = "kubernetes.io/batch-cpu 45000 = capacity 100 - margin of 40% 40 - used by the system 5 - used by online pods 10"
    assert decision.message.startswith(words) and toy.condition()["message"] == decision.message


def test_less_is_written_at_once_and_more_after_two_full_minutes(toy) -> None:
    toy.node()
    toy.use(system=("20", "0"))
    toy.settle()
    toy.advance(2 * MINUTE + 10_000)
    toy.use(system=("5", "0"))
    toy.settle()
    assert toy.lent(CPU) == 40_000
    toy.advance(MINUTE)
    assert toy.lent(CPU) == 55_000
    toy.use(system=("30", "0"))
    toy.settle()
    assert toy.lent(CPU) == 30_000


def test_a_use_that_swings_leaves_what_is_lent_where_its_peaks_do(toy) -> None:
    toy.node()
    written = 0
    for at in range(30):
        toy.use(system=("40" if at % 2 else "10", "0"))
        written += len(toy.advance(MINUTE))
    assert toy.lent(CPU) == 20_000 and written <= 3


def test_what_changes_little_is_written_every_five_minutes(toy) -> None:
    toy.node()
    toy.use(system=("20", "0"))
    toy.settle()
    toy.advance(MINUTE)
    toy.use(system=("22", "0"))
    assert toy.advance(3 * MINUTE) == [] and toy.lent(CPU) == 40_000
    toy.advance(MINUTE)
    assert toy.lent(CPU) == 38_000


def test_old_news_end_the_lending_and_new_ones_begin_it_again(toy) -> None:
    toy.node()
    toy.use()
    toy.settle()
    toy.advance(15 * MINUTE)
    assert toy.lent(CPU) == 60_000
    (decision,) = toy.advance(1_000)
    assert (decision.name, decision.reason) == ("LendingStopped", "MetricsStale")
    assert toy.lent(CPU) is None and toy.condition()["status"] == "False"
    assert toy.advance(60 * MINUTE) == []
    toy.use()
    toy.settle()
    assert toy.lent(CPU) == 60_000


def test_a_node_whose_clock_is_wrong_lends_nothing_until_its_time_has_come(toy) -> None:
    toy.node()
    toy.use()
    toy.settle()
    toy.now += 60 * MINUTE
    toy.use()
    toy.now -= 60 * MINUTE
    assert [decision.reason for decision in toy.settle()] == ["MetricsFromLater"]
    assert toy.successor().decide(toy.now, frozenset()) == []
    toy.advance(44 * MINUTE)
    assert toy.lent(CPU) is None
    toy.advance(2 * MINUTE)
    assert toy.lent(CPU) == 60_000


def test_what_another_version_remembered_is_learnt_anew(toy) -> None:
    toy.node()
    toy.use()
    toy.settle()
    toy.private = zlib.compress(b'{"format": 0}')
    toy.restart()
    assert toy.settle() == [] and toy.lent(CPU) == 60_000


def test_co_location_that_is_turned_off_takes_back_what_was_written_here_alone(make_toy) -> None:
    toy = make_toy()
    toy.configure(colocation_config='{"enable": true}')
    toy.node()
    toy.use()
    toy.settle()
    toy.configure(colocation_config='{"enable": false}')
    assert names(toy.settle()) == ["LendingStopped"] and toy.lent(CPU) is None
    amounts = {"cpu": "10", "kubernetes.io/batch-cpu": "7000"}
    toy.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "o"}, "status": {"allocatable": amounts}})
    assert toy.settle() == [] and toy.lent(CPU, "o") == 7_000


def test_a_pod_that_starts_counts_with_its_request_until_it_is_measured(toy) -> None:
    toy.node()
    toy.use()
    toy.settle()
    toy.pod("new", cpu="30")
    toy.settle()
    assert toy.lent(CPU) == 30_000 and "1 of 1 pods count with their requests" in toy.condition()["message"]
    toy.advance(MINUTE)
    toy.use(new=("1", "0"))
    toy.advance(2 * MINUTE)
    assert toy.lent(CPU) == 59_000


def test_what_was_measured_of_a_pod_that_is_gone_counts_no_more(toy) -> None:
    toy.node()
    toy.pod("web", cpu="30")
    toy.use(web=("30", "0"))
    toy.settle()
    toy.remove(Key("Pod", "default", "web"))
    toy.advance(2 * MINUTE)
    assert toy.lent(CPU) == 60_000


def test_what_others_were_given_is_marked_and_the_mark_goes_with_it(toy) -> None:
    mark = "node.koordinator.sh/originExtendedAllocatable"
    given = '{"allocations": [{"priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "10000"}}]}'
    toy.node(annotations={"node.koordinator.sh/thirdPartyAllocations": given})
    toy.use()
    toy.settle()
    node = toy.store.objects[Key("Node", "", "n")]
    assert toy.lent(CPU) == 50_000
    before = {"kubernetes.io/batch-cpu": "60000", "kubernetes.io/batch-memory": "65000000000"}
    assert json.loads(node.annotations[mark]) == {"resources": before}
    toy.put({**node.manifest(), "metadata": {"name": "n", "annotations": {mark: node.annotations[mark]}}})
    toy.advance(2 * MINUTE)
    assert mark not in toy.store.objects[Key("Node", "", "n")].annotations


def test_explain_says_the_terms_and_what_is_not_written_yet(toy) -> None:
    toy.node()
    toy.use(system=("20", "0"))
    toy.settle()
    toy.use(system=("10", "0"))
    answer = toy.core.query("explain", {"kind": "Node", "name": "n"})
    assert answer["verdict"] == "Lends" and "used by the system 10" in answer["message"]
    assert "written so far: kubernetes.io/batch-cpu 40000" in answer["message"]
    assert toy.core.query("explain", {"name": "m"}) == {"found": False, "message": "node m is not there"}
    with pytest.raises(KeyError):
        toy.core.query("weather", {})


MANY = [HealthCheck.function_scoped_fixture]
"""`make_toy` is only a way to make a cluster."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("use", "pod", "gone", "wait", "node", "config", "bad", "opt")),
        st.integers(0, 2),
        st.integers(0, 60),
    ),
    max_size=25,
)


def _world(make_toy):
    """Nodes that have lent something for a while."""
    toy = make_toy({"enable": True})
    for name in ("n0", "n1", "n2"):
        toy.node(name)
        toy.use(name, system=("30", "1M"))
    toy.advance(3 * MINUTE)
    return toy


def _step(toy, word: str, at: int, amount: int) -> None:
    name, pod = f"n{at}", Key("Pod", "default", f"p{amount % 4}")
    if word == "node":
        toy.node(name, cpu=str(50 + amount))
    elif word == "opt":
        toy.node(name, labels={"koordinator.sh/colocation": "true" if amount % 2 else "false"})
    elif word == "use":
        toy.use(name, system=(str(amount), f"{amount}M"), **{pod.name: (str(amount // 2), "1M")})
    elif word == "pod" and pod not in toy.store.objects:
        toy.pod(pod.name, name, cpu=str(amount))
    elif word == "gone" and pod in toy.store.objects:
        toy.remove(pod)
    elif word == "config":
        toy.configure(colocation_config=f'{{"enable": {"true" if at else "false"}, "midUnallocatedPercent": {amount}}}')
    elif word == "bad":
        toy.configure(colocation_config="{")
    elif word == "wait":
        toy.advance((1 + amount) * 20_000)


@settings(max_examples=60, deadline=None, suppress_health_check=MANY)
@given(STEPS, st.integers(0, 24))
def test_a_service_that_starts_anew_decides_what_its_predecessor_would_have(make_toy, steps, restarted_at) -> None:
    """Two worlds with the same history, in one of which the service starts anew once; and after each step a successor is at rest."""
    kept, anew = _world(make_toy), _world(make_toy)
    for number, (word, at, amount) in enumerate(steps):
        for toy in (kept, anew):
            _step(toy, word, at, amount)
            toy.settle()
        if number == restarted_at:
            anew.restart()
            anew.settle()
        assert kept.successor().decide(kept.now, frozenset()) == []
    for toy in (kept, anew):
        toy.advance(40 * MINUTE)
    assert [(one.name, one.subject, one.message) for one in kept.decided] == [
        (one.name, one.subject, one.message) for one in anew.decided
    ]
    assert kept.private == anew.private
    assert rfc3339(kept.now) == rfc3339(anew.now)


@settings(max_examples=40, deadline=None, suppress_health_check=MANY)
@given(STEPS, st.randoms())
def test_facts_of_one_moment_may_come_in_any_order(make_toy, steps, chance) -> None:
    """Of different objects: what comes out is the same, bytes and all."""
    moments: dict[tuple[str, str], tuple[str, int, int]] = {}
    for word, at, amount in steps:
        subject = (
            f"p{amount % 4}"
            if word in ("pod", "gone")
            else "config"
            if word in ("config", "bad")
            else f"{word in ('use',)}{at}"
        )
        if word != "wait":
            moments[subject, ""] = (word, at, amount)
    found = []
    listed = list(moments.values())
    for _ in range(2):
        toy = _world(make_toy)
        for step in listed:
            _step(toy, *step)
        toy.advance(3 * MINUTE)
        found.append(([(one.name, one.subject, one.message) for one in toy.decided], toy.private))
        chance.shuffle(listed)
    assert found[0] == found[1]
