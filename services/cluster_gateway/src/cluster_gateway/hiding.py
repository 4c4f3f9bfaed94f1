"""Taking the values out of Secrets before they become facts."""

import base64
import binascii
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.hidden import HIDDEN, without_copy
from cluster_gateway.domain.writing import KEPT, Parts, Write
from cluster_gateway.secrets import GENERATE, SSH_KEYPAIR, Secrets, SecretsNotKept, private_key_name, ssh_keypair
from kube import Event, Key, Object, Store, runs

_log = logging.getLogger(__name__)

_VALUES = ("data", "stringData")


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Secrets that are not written, by their places: whoever writes a Secret sees no values to compare."""

    unchanged: dict[int, None] = field(default_factory=dict)
    """All is so already."""
    immutable: dict[int, None] = field(default_factory=dict)
    """They would change values that may not change."""

    def others(self, writes: Iterable[Write]) -> Iterator[Write]:
        """What of ``writes`` is to be done."""
        left, first = {**self.unchanged, **self.immutable}, 0
        for write in writes:
            keys = [key for place, key in enumerate(write.keys, first) if place not in left] if left else write.keys
            first += len(write.keys)
            if keys:
                yield replace(write, keys=keys)


class Hiding:
    """Keeps the values of Secrets where they belong: before they are facts, and until it is a fact that they are gone."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._left: dict[Key, dict[str, bytes] | None] = {}
        """What is left of a Secret once the change set is stored; None for one that is gone."""
        self._hidden: list[Event] = []
        """The events of this change set that are done with."""

    def seal(self, cluster: Cluster, first: int) -> None:
        """Hide what the events of ``cluster`` from place ``first`` on brought. Raises SecretsNotKept; nothing was done then."""
        secrets = [event for event in cluster.events[first:] if event.key.kind == "Secret"]
        if secrets:
            self.hide(cluster, secrets)
            self._hidden += secrets

    def hide(self, cluster: Cluster, events: Sequence[Event]) -> None:
        """Keep the values that ``events`` brought, and leave only the names of their keys in the objects."""
        done = {id(event) for event in self._hidden}
        secrets = [
            event for run in runs(events) if run[0].key.kind == "Secret" for event in run if id(event) not in done
        ]
        if not secrets:
            return
        made = {event.key for event in secrets if event.old is None}
        wanted: dict[Key, dict[str, bytes] | None] = {}
        kept: dict[Key, dict[str, bytes]] = {}
        same: set[Key] = set()
        for key in dict.fromkeys(event.key for event in secrets):
            secret, known = cluster.store.get(key), {} if key in made else self._secrets.get(key) or {}
            wanted[key] = data = None if secret is None else _wanted(secret, known)
            if data is not None and not data.items() <= known.items():
                kept[key] = {**known, **data}
            if data == known:
                same.add(key)
        self._secrets.put_all(kept)
        for key, data in wanted.items():
            self._left.pop(key, None)
            if key not in same:
                self._left[key] = data
            if data is not None:
                _blank(cluster, cluster.store.objects[key], data)

    def left_alone(self, store: Store, writes: Sequence[Write]) -> LeftAlone:
        """Which of ``writes`` are not to be done. A Secret that is written twice at once is written."""
        left = LeftAlone()
        counts = Counter(key for write in writes if write.keys[0].kind == "Secret" for key in write.keys)
        wanted = ((key, write.parts) for write in writes for key in write.keys) if counts else ()
        for index, (key, parts) in enumerate(wanted):
            there = store.get(key) if counts[key] == 1 else None
            if there is None or parts is None:
                continue
            known = self._secrets.get(there.key) or {}
            same = _values(there.changed(body=parts.body), known) == known
            if same and _same_parts(there, parts):
                left.unchanged[index] = None
            elif not same and there.body.get("immutable"):
                left.immutable[index] = None
        return left

    def stored(self) -> None:
        """What happened so far is in the log."""
        left, self._left = self._left, {}
        self._hidden.clear()
        for key, data in left.items():
            try:
                if data is None:
                    self._secrets.drop(key)
                else:
                    self._secrets.put_all({key: data})
            except (OSError, SecretsNotKept) as error:  # values too many are kept a while longer
                _log.warning("values_left", extra={"secret": str(key), "detail": str(error)})
                self._left.setdefault(key, data)


def _wanted(secret: Object, known: Mapping[str, bytes]) -> dict[str, bytes]:
    """All values that the Secret is to have, with those that are made here."""
    data = _values(secret, known)
    secret_type = str(secret.body.get("type", ""))
    private = private_key_name(secret_type)
    if secret.annotations.get(GENERATE) == SSH_KEYPAIR and not data.get(private):
        data |= dict(known) if private in known else ssh_keypair(secret_type)
    return data


def _blank(cluster: Cluster, secret: Object, data: Mapping[str, bytes]) -> None:
    """Leave of the values only the names of their keys."""
    body = {name: part for name, part in secret.body.items() if name != "stringData"}
    if data or body.get("data"):
        body["data"] = dict.fromkeys(sorted(data), HIDDEN)
    cluster.replace(secret, without_copy(secret.metadata), body)


def _values(secret: Object, known: Mapping[str, bytes]) -> dict[str, bytes]:
    """All values that a Secret has now; a hidden one that is known already stays as it is."""
    values: dict[str, bytes] = {}
    for name, text in (secret.body.get("data") or {}).items():
        if text == HIDDEN and name in known:
            values[name] = known[name]
        else:
            values[name] = b"" if text is None else _decoded(str(text))
    for name, text in (secret.body.get("stringData") or {}).items():
        values[name] = str(text).encode()
    return values


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        return text.encode()


def _same_parts(secret: Object, parts: Parts) -> bool:
    """Whether all that a user decides is the same, but for the values."""
    bodies = [{name: part for name, part in one.items() if name not in _VALUES} for one in (secret.body, parts.body)]
    before, after = (
        {name: part for name, part in one.items() if name not in KEPT}
        for one in (secret.metadata, without_copy(parts.metadata))
    )
    return bodies[0] == bodies[1] and before == after
