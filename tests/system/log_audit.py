"""What the logs of a system tell, read from their beginning: whether ever something was half done, or done twice."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import aclosing

from google.protobuf.message import DecodeError

from bus import Bus, Entry
from kube import Event, Key, Manifest, Object, Store
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2
from tidegate.services import DECIDERS

GROUP = "scheduling.k8s.io/group-name"
STAGES = {"": 0, "Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
PATIENCE_SECONDS = 20.0


async def entries_of(bus: Bus, name: str) -> list[Entry]:
    """All that a log holds."""
    log = bus.log(name)
    last, found = await log.last(), list[Entry]()
    async with aclosing(log.read(0)) as reader:
        while last and (not found or found[-1].sequence < last):
            found += await anext(reader)
    return found


async def audit(bus: Bus) -> list[str]:
    """Everything that the logs show and that must never be; waits until what is decided by now has been carried out."""
    decided = {service: await entries_of(bus, subjects.decisions(service)) for service in DECIDERS}
    log = await _when_carried_out(bus, decided)
    store, wrong, outcomes = Store(), list[str](), Counter[str]()
    for entry in log:
        try:
            message = fact_pb2.ChangeSet.FromString(entry.payload)
            events = facts.fold(store, message, entry.sequence)
        except (DecodeError, IndexError):  # poison that a test has put there
            continue
        outcomes.update(outcome.decision_id for outcome in facts.outcomes(message))
        wrong += [f"revision {entry.sequence}: {said}" for said in (*_pods(events), *_gangs(store, events))]
    ids = [decision_id for entries in decided.values() for entry in entries for decision_id in _ids(entry)]
    return wrong + [f"decision {one} has {outcomes[one]} outcomes" for one in ids if outcomes[one] != 1]


async def _when_carried_out(bus: Bus, decided: Mapping[str, list[Entry]]) -> list[Entry]:
    """The facts as soon as they tell that every decision of ``decided`` has been carried out."""
    last = {service: max((one.sequence for one in log if _ids(one)), default=0) for service, log in decided.items()}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            log = await entries_of(bus, subjects.FACTS)
            if all(_position(log, service) >= sequence for service, sequence in last.items()):
                return log
            await asyncio.sleep(0.1)


def _position(log: list[Entry], service: str) -> int:
    """How far the decisions of a service have been carried out."""
    messages = (_message(entry) for entry in log)
    return max((message.positions.get(service, 0) for message in messages if message is not None), default=0)


def _message(entry: Entry) -> fact_pb2.ChangeSet | None:
    try:
        return fact_pb2.ChangeSet.FromString(entry.payload)
    except DecodeError:
        return None


def _ids(entry: Entry) -> list[str]:
    """The ids of the decisions of one commit."""
    try:
        return [decision_id for decision_id, _ in decode_commit(decision_pb2.Commit.FromString(entry.payload))]
    except DecodeError:
        return []


def _pods(events: list[Event]) -> Iterator[str]:
    """A pod is bound once, and its phase goes one way."""
    for event in events:
        old, new = event.old, event.new
        if event.key.kind != "Pod" or old is None or new is None or old.uid != new.uid:
            continue
        before, after = old.spec.get("nodeName"), new.spec.get("nodeName")
        if before and before != after:
            yield f"{event.key} went from {before} to {after}"
        if _stage(old) > _stage(new):
            yield f"{event.key} went from {old.status.get('phase')} back to {new.status.get('phase')}"


def _stage(pod: Object) -> int:
    return STAGES[str(pod.status.get("phase", ""))]


def _gangs(store: Store, events: list[Event]) -> Iterator[str]:
    """Members are bound only where the gang has its minimum with them."""
    bound = {_group(event.new) for event in events if event.new is not None and _was_bound(event)}
    for key in sorted(bound - {None}):
        group = store.get(key)
        pods = [pod for pod in store.of_kind("Pod").values() if _group(pod) == key and _counts(pod)]
        needed = int(group.spec.get("minMember", 1)) if group is not None else 0
        if len(pods) < needed:
            yield f"{key} has {len(pods)} members bound, it needs {needed}"


def _was_bound(event: Event) -> bool:
    old = event.old if event.old is not None and event.new is not None and event.old.uid == event.new.uid else None
    return _counts(event.new) and not (old is not None and old.spec.get("nodeName"))


def _counts(pod: Object | None) -> bool:
    return (
        pod is not None
        and pod.kind == "Pod"
        and bool(pod.spec.get("nodeName"))
        and not pod.deleting
        and pod.status.get("phase") != "Failed"
    )


def _group(pod: Object | None) -> Key | None:
    annotations: Manifest = pod.annotations if pod is not None else {}
    name = annotations.get(GROUP)
    return Key("PodGroup.scheduling.volcano.sh", pod.namespace, name) if pod is not None and name else None
