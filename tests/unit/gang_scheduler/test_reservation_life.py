"""How reservations come to their end, change their size, and find their node."""

from typing import Any

from kube import Key

A = {"app": "a"}
RESERVATION = "Reservation.scheduling.koordinator.sh"
HOUR_MS = 3_600_000


def test_a_reservation_expires_and_what_nobody_took_is_free(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4, allocateOnce=False, ttl="1h")
    toy.settle()
    toy.pods("mine", cpu=1, labels=A)
    toy.settle()
    assert toy.core.deadline() == toy.now + HOUR_MS
    toy.pods("other", cpu=3)
    toy.settle()
    assert toy.bound() == ["mine"]
    toy.now += HOUR_MS
    toy.settle()
    assert toy.bound() == ["mine", "other"]
    assert toy.reserved("r")["phase"] == "Failed"
    assert toy.reserved("r")["conditions"][-1]["reason"] == "Expired"
    toy.now += 24 * HOUR_MS
    toy.settle()
    assert Key(RESERVATION, "", "r") not in toy.store.objects


def test_a_time_that_is_given_goes_before_the_span(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4, ttl="1h", expires="2026-01-01T00:10:00Z")
    toy.reservation("for-ever", cpu=0, ttl="0")
    toy.settle()
    assert toy.core.deadline() == toy.now + 600_000


def test_a_reservation_whose_node_is_gone_has_failed(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4)
    toy.settle()
    toy.delete(Key("Node", "", "n1"))
    toy.settle()
    assert toy.reserved("r")["phase"] == "Failed"
    assert "its node n1 is gone" in toy.reserved("r")["conditions"][-1]["message"]


def test_a_deleted_reservation_frees_its_room_at_once(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4)
    toy.settle()
    toy.pods("other", cpu=4)
    toy.settle()
    assert toy.bound() == []
    toy.delete(Key(RESERVATION, "", "r"))
    toy.settle()
    assert toy.bound() == ["other"]


def test_a_reservation_grows_when_there_is_room_and_shrinks_at_once(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=2)
    toy.settle()
    toy.pods("other", cpu=1, node="n1")
    toy.reservation("r", cpu=4)
    toy.settle()
    assert toy.reserved("r")["allocatable"] == {"cpu": "2"}
    toy.gone("other")
    toy.settle()
    assert toy.reserved("r")["allocatable"] == {"cpu": "4"}
    toy.reservation("r", cpu=1)
    toy.settle()
    assert toy.reserved("r")["allocatable"] == {"cpu": "1"}


def test_a_reservation_that_finds_no_room_says_why_and_gets_it_later(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("first", cpu=3, node="n1")
    toy.reservation("r", cpu=2)
    toy.settle()
    assert toy.reserved("r")["phase"] == "Pending"
    assert "Insufficient cpu (needs 2, most free 1 on n1)" in toy.reserved("r")["conditions"][0]["message"]
    assert toy.explain("Reservation", "r")["verdict"] == "Waiting"
    toy.gone("first")
    toy.settle()
    assert toy.reserved("r")["phase"] == "Available"


def test_the_template_is_placed_by_the_rules_for_pods(toy: Any) -> None:
    toy.node("n1", cpu=8, labels={"zone": "a"})
    toy.node("n2", cpu=8, labels={"zone": "b"})
    containers = [{"resources": {"requests": {"cpu": "1"}}}]
    toy.reservation("by-label", cpu=1, pod={"containers": containers, "nodeSelector": {"zone": "b"}})
    toy.reservation("by-name", cpu=1, pod={"containers": containers, "nodeName": "n2"})
    toy.settle()
    assert {toy.reserved(name)["nodeName"] for name in ("by-label", "by-name")} == {"n2"}


def test_a_reservation_keeps_away_from_pods_as_its_template_says(toy: Any) -> None:
    toy.node("n1", cpu=8)
    toy.node("n2", cpu=4)
    toy.pods("noisy", cpu=1, node="n2", labels={"app": "noisy"})
    away = {"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    toy.reservation("r", cpu=1, pod={"containers": [{"resources": {"requests": {"cpu": "1"}}}], "affinity": apart})
    toy.settle()
    assert toy.reserved("r")["nodeName"] == "n1"
    toy.delete(Key(RESERVATION, "", "r"))
    assert toy.core.check() == []
