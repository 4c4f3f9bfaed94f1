"""What a service does on the bus, as the permissions of its user on a NATS server.

A server that is given them keeps services apart: nobody writes another's log, answers in another's place or reads its answers.
What it cannot keep apart: who may read a stream may read all of it, and may have it delivered to a subject of its own choice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from bus.topology import DEAD, LEASES, SNAPSHOTS, VALUES, stream_of_log

_API = "$JS.API"
_LEASES, _SNAPSHOTS = f"KV_{LEASES}", f"OBJ_{SNAPSHOTS}"


@dataclass(frozen=True, slots=True)
class Conduct:
    """What a service does: the words of `deploy/topology/permissions.yaml`."""

    writes: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    leads: str = ""
    sets: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    hears: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    parks: bool = False
    reads_parked: bool = False


def conducts(written: Mapping[str, Mapping[str, Any]]) -> dict[str, Conduct]:
    """What each service does, from the document's ``services``. Raises TypeError for a word that is none of Conduct's."""
    lists = {field.name for field in fields(Conduct) if field.default == ()}

    def conduct(said: Mapping[str, Any]) -> Conduct:
        given: dict[str, Any] = {word: tuple(value) if word in lists else value for word, value in said.items()}
        return Conduct(**given)

    return {service: conduct(said) for service, said in written.items()}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The subjects that a user may publish and subscribe to, and whether it may answer what it is asked."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    responds: bool


def permissions(service: str, conduct: Conduct) -> Permissions:
    """What the user of ``service`` is permitted, no more than ``conduct`` needs."""
    publish = sorted({*_logs(conduct), *_shared(service, conduct), *conduct.asks, *conduct.tells})
    subscribe = [f"_INBOX.{service}.>", *sorted({*conduct.serves, *conduct.hears})]
    return Permissions(tuple(publish), tuple(subscribe), bool(conduct.serves))


def _logs(conduct: Conduct) -> Iterator[str]:
    for log in (*conduct.reads, *conduct.writes):
        yield from _read(stream_of_log(log).name)
        # Logs are read from their snapshots on.
        yield from _read(_SNAPSHOTS)
        yield f"{_API}.STREAM.NAMES"
    for log in conduct.writes:
        spec = stream_of_log(log)
        yield from spec.subjects
        yield from _made(spec.name)
        yield f"{_API}.STREAM.PURGE.{spec.name}"
    if conduct.snapshots:
        yield f"$O.{SNAPSHOTS}.>"
        yield from _made(_SNAPSHOTS)
        yield f"{_API}.STREAM.PURGE.{_SNAPSHOTS}"


def _shared(service: str, conduct: Conduct) -> Iterator[str]:
    if conduct.leads:
        yield f"$KV.{LEASES}.{conduct.leads}"
        yield f"{_API}.INFO"
        yield from _made(_LEASES)
        yield f"{_API}.STREAM.MSG.GET.{_LEASES}"
    if conduct.sets:
        yield from conduct.sets
        yield from _made(VALUES)
        yield f"{_API}.STREAM.PURGE.{VALUES}"
    if conduct.follows:
        yield from _read(VALUES)
    if conduct.parks:
        yield f"tidegate.dead.{service}"
        yield from _made(DEAD)
    if conduct.reads_parked:
        yield f"{_API}.STREAM.INFO.{DEAD}"
        yield f"{_API}.STREAM.MSG.GET.{DEAD}"


def _read(stream: str) -> Iterator[str]:
    """Looking at a stream, and a consumer of one's own on it."""
    yield f"{_API}.STREAM.INFO.{stream}"
    yield f"{_API}.STREAM.MSG.GET.{stream}"
    yield f"{_API}.CONSUMER.CREATE.{stream}"
    yield f"{_API}.CONSUMER.CREATE.{stream}.>"
    yield f"{_API}.CONSUMER.DELETE.{stream}.*"
    yield f"$JS.FC.{stream}.>"


def _made(stream: str) -> Iterator[str]:
    """Making a stream, which a server refuses where it is there with other properties, and its number of replicas."""
    yield f"{_API}.STREAM.INFO.{stream}"
    yield f"{_API}.STREAM.CREATE.{stream}"
    yield f"{_API}.STREAM.UPDATE.{stream}"
