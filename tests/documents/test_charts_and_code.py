"""The charts say what the code does: conduct on the bus, rights at an API server."""

import importlib
import re

import pytest
from api_rights import READ, STATUS, WRITES, gateway_rules
from bus_conduct import conducts
from document_messages import MESSAGES

from bus.permissions import permissions
from chassis.role import Role
from cluster_gateway.domain.ownership import refusal
from kube import KINDS, Verb
from tidegate import subjects
from tidegate.services import DECIDERS

CONDUCTS = conducts()


@pytest.mark.parametrize("service", DECIDERS)
def test_a_deciding_service_reads_and_answers_on_the_bus_as_its_role_says(service: str) -> None:
    role: Role = importlib.import_module(f"{service}.role").ROLE
    conduct = CONDUCTS[service]
    assert set(conduct.reads) == {subjects.FACTS, *map(subjects.decisions, role.inputs)}
    assert (conduct.writes, conduct.leads) == ((subjects.decisions(service),), service)
    assert all(_covers(conduct.serves, subjects.question(service, name)) for name in (*role.queries, "status"))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.subject)
def test_who_sends_and_takes_a_message_may_do_so(message) -> None:
    """And of the last values and the requests nobody else."""
    subject = re.sub(r"<\w+>", "x", message.subject)
    for service in CONDUCTS:
        one = CONDUCTS[service]
        sends = _covers((*one.asks, *one.tells, *one.sets), subject)
        takes = _covers((*one.serves, *one.hears, *one.follows), subject)
        if message.kept in ("request", "no", "last value") and "<service>" not in message.subject:
            assert sends == (service in message.sent_by.split(", ")), service
            assert takes == (message.taken_by == service), service


def test_no_two_services_write_or_answer_the_same() -> None:
    for word in ("writes", "serves", "sets"):
        owned = [subject for conduct in CONDUCTS.values() for subject in getattr(conduct, word)]
        assert len(set(owned)) == len(owned)
    leads = [conduct.leads for conduct in CONDUCTS.values() if conduct.leads]
    assert len(set(leads)) == len(leads)


def test_nobody_may_delete_a_stream_or_hear_everything() -> None:
    for service, conduct in CONDUCTS.items():
        permitted = permissions(service, conduct)
        assert not [one for one in permitted.publish if "STREAM.DELETE" in one or one in (">", "*", "tidegate.>")]
        assert f"_INBOX.{service}.>" in permitted.subscribe and "_INBOX.>" not in permitted.subscribe


def _covers(patterns: tuple[str, ...], subject: str) -> bool:
    return any(re.fullmatch(one.replace(".", r"\.").replace("*", r"[^.]+"), subject) for one in patterns)


def test_every_write_of_the_gateway_is_one_that_a_service_may_decide() -> None:
    """Or of its own: Events, the queues that every cluster has, what node agents report, what goes with claims."""
    own = {
        *("Event", "Queue.scheduling.volcano.sh", "NodeMetric.slo.koordinator.sh", "Device.scheduling.koordinator.sh"),
        *("PersistentVolume", "ResourceClaim.resource.k8s.io"),
    }
    verbs = {"create": Verb.CREATE, "patch": Verb.PATCH, "delete": Verb.DELETE}
    for kind, allowed in WRITES.items():
        for verb in set(allowed) & verbs.keys() if kind not in own else ():
            assert any(not refusal(service, verbs[verb], kind) for service in DECIDERS), (verb, kind)
    for kind in set(STATUS) - own:
        assert any(not refusal(service, Verb.STATUS, kind) for service in DECIDERS), kind


def test_every_kind_can_be_read_and_no_other() -> None:
    from cluster_gateway.main import NOT_READ

    rules = [rule for part in ("always", "secrets") for rule in gateway_rules()[part]["cluster"]]
    read = {
        (group, plural)
        for rule in rules
        if set(READ) <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    assert read == {(KINDS[kind].group, KINDS[kind].plural) for kind in KINDS.keys() - NOT_READ}
