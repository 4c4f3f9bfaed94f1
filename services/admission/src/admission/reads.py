"""Reading for users: get, list with selectors and pages, watch from a revision."""

import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import orjson

from admission.view import View
from kube import Key, Manifest, Object
from kube.selectors import parse_fields, parse_labels

LARGEST_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects are meant: of those that the reader ``sees``. Empty parts mean all.

    Raises SelectorError for a selector that is none.
    """

    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    field_selector: str = ""
    sees: Callable[[Key], bool] | None = None

    def test(self) -> Callable[[Object], bool]:
        """Whether an object is one of these."""
        labels, fields = parse_labels(self.label_selector), parse_fields(self.field_selector)

        sees = self.sees

        def is_meant(item: Object) -> bool:
            key = item.key
            return (
                (not self.kind or key.kind == self.kind)
                and (not self.namespace or key.namespace == self.namespace)
                and (not self.name or key.name == self.name)
                and (sees is None or sees(key))
                and labels(item.labels)
                and (not self.field_selector or fields(item.manifest()))
            )

        return is_meant


class BadToken(ValueError):
    """A page token that this server never gave."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. ``token`` asks for the next part; empty at the end."""

    manifests: tuple[bytes, ...]
    token: str
    revision: int


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a watch sees: ``added``, ``modified``, ``deleted``, or ``bookmark`` (the revision alone).

    A watch from ``revision`` misses nothing that comes after this change: of several that happened together only the last
    one has their own, the others the one before.
    """

    type: str
    manifest: bytes
    revision: int


class Reads:
    """Answers from admission's own fold."""

    def __init__(self, view: View) -> None:
        self._view = view

    def get(self, key: Key) -> Object | None:
        return self._view.store.get(key)

    def page(self, wanted: Filter, size: int, token: str) -> Page:
        """The objects by namespace and name, ``size`` at a time; a token goes on behind the last name given."""
        after = _decode(token)
        is_meant = wanted.test()
        pool = self._view.store.of_kind(wanted.kind).items()
        keys = sorted(key for key, item in pool if (after is None or key[1:] > after) and is_meant(item))
        limit = min(size or LARGEST_PAGE, LARGEST_PAGE)
        part = keys[:limit]
        manifests = tuple(orjson.dumps(self._view.store.objects[key].manifest()) for key in part)
        more = _encode(part[-1]) if len(keys) > limit else ""
        return Page(manifests, more, self._view.revision)

    async def watch(self, wanted: Filter, from_revision: int) -> AsyncIterator[Change]:
        """What is there (for revision 0), a bookmark, then every change. Raises view.GoneRevision."""
        is_meant = wanted.test()
        revision = from_revision
        if not revision:
            revision = self._view.revision
            pool = self._view.store.of_kind(wanted.kind) if wanted.kind else self._view.store.objects
            for item in sorted(filter(is_meant, pool.values()), key=lambda one: one.key):
                yield Change("added", _dump(item), item.revision)
        yield Change("bookmark", b"", revision)
        async for at, events in self._view.changes(revision):
            found = [change for event in events if (change := _change(event.old, event.new, is_meant, at))]
            for change in found[:-1]:
                # Who breaks off here and goes on from this revision misses nothing of what changed together.
                yield replace(change, revision=at - 1)
            for change in found[-1:]:
                yield change


def _change(old: Object | None, new: Object | None, is_meant: Callable[[Object], bool], at: int) -> Change | None:
    before, after = old is not None and is_meant(old), new is not None and is_meant(new)
    if after and new is not None:
        return Change("modified" if before else "added", _dump(new), at)
    if before and old is not None:
        return Change("deleted", _dump(old), at)
    return None


def _dump(item: Object) -> bytes:
    manifest: Manifest = item.manifest()
    return orjson.dumps(manifest)


def _encode(key: Key) -> str:
    return base64.urlsafe_b64encode(f"{key.namespace}/{key.name}".encode()).decode()


def _decode(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        namespace, _, name = base64.urlsafe_b64decode(token).decode().partition("/")
    except ValueError:
        raise BadToken(f"{token!r} is no page token; send the next_page_token of the page before, or none") from None
    return namespace, name
