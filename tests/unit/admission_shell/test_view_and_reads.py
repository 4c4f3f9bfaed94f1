"""Reading for users: from admission's own fold, from a revision on."""

from typing import Any

import orjson
import pytest

from admission.reads import BadToken, Filter
from admission.view import GoneRevision, View
from bus import Entry, MemoryBus
from kube import Edit, Key
from kube.selectors import SelectorError
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.facts import FactSet


def config(name: str, namespace: str = "default", labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def collect(stream: Any, into: list[Any]) -> None:
    async for item in stream:
        into.append(item)


def names(page: Any) -> list[str]:
    return [orjson.loads(item)["metadata"]["name"] for item in page.manifests]


# --- pages --------------------------------------------------------------------------------------------------------------


def test_a_list_is_by_namespace_and_name_and_goes_on_where_it_ended(desk: Any) -> None:
    desk.apply(*(config(name, space) for space in ("b", "a") for name in ("z", "x", "y")))
    wanted, token, seen = Filter("ConfigMap"), "", list[list[str]]()
    while True:
        page = desk.reads.page(wanted, 4, token)
        seen.append(names(page))
        token = page.token
        if not token:
            break
        desk.apply(config(f"a-late-one-{len(seen)}", "a"))
    assert seen == [["x", "y", "z", "x"], ["y", "z"]]
    assert page.revision == desk.view.revision


def test_the_last_page_has_no_token_even_when_it_is_full(desk: Any) -> None:
    desk.apply(config("a"), config("b"))
    assert desk.reads.page(Filter("ConfigMap"), 2, "").token == ""


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        (Filter("ConfigMap"), ["p", "q", "p"]),
        (Filter("ConfigMap", namespace="team"), ["p"]),
        (Filter("ConfigMap", name="p"), ["p", "p"]),
        (Filter("ConfigMap", label_selector="app=web"), ["p"]),
        (Filter("ConfigMap", label_selector="app!=web"), ["q", "p"]),
        (Filter("ConfigMap", field_selector="data.k=v"), ["q"]),
        (Filter("ConfigMap", field_selector="metadata.namespace=team"), ["p"]),
        (Filter("Secret"), []),
    ],
)
def test_filters(desk: Any, filter_: Filter, found: list[str]) -> None:
    desk.apply(config("p", labels={"app": "web"}), config("q", k="v"), config("p", "team"))
    assert names(desk.reads.page(filter_, 0, "")) == found


def test_a_selector_that_is_none_is_refused(desk: Any) -> None:
    with pytest.raises(SelectorError):
        desk.reads.page(Filter("ConfigMap", label_selector="a=b=c"), 0, "")


# --- watches --------------------------------------------------------------------------------------------------------------


def test_a_watch_begins_with_what_there_is_and_goes_on(desk: Any) -> None:
    desk.apply(config("b"), config("a"))
    seen: list[Any] = []
    watching = desk.begin(collect(desk.reads.watch(Filter("ConfigMap"), 0), seen))
    began = desk.view.revision
    desk.apply(config("c"))
    desk.apply(config("a", x="1"))
    desk.delete(Key("ConfigMap", "default", "b"))
    told = [
        (change.type, orjson.loads(change.manifest)["metadata"]["name"] if change.manifest else "") for change in seen
    ]
    assert told == [
        ("added", "a"),
        ("added", "b"),
        ("bookmark", ""),
        ("added", "c"),
        ("modified", "a"),
        ("deleted", "b"),
    ]
    assert [change.revision for change in seen[2:]] == [began, began + 1, began + 2, began + 3]
    assert not watching.done()


def test_a_watch_from_a_revision_tells_exactly_what_came_after(desk: Any) -> None:
    desk.apply(config("a"))
    since = desk.view.revision
    desk.apply(config("b"))
    seen: list[Any] = []
    desk.begin(collect(desk.reads.watch(Filter("ConfigMap"), since), seen))
    desk.apply(config("c"))
    assert [(change.type, change.revision) for change in seen] == [
        ("bookmark", since),
        ("added", since + 1),
        ("added", since + 2),
    ]


def test_an_object_that_begins_or_ceases_to_be_meant_is_added_or_deleted(desk: Any) -> None:
    seen: list[Any] = []
    desk.begin(collect(desk.reads.watch(Filter("ConfigMap", label_selector="app=web"), desk.view.revision), seen))
    desk.apply(config("a", labels={"app": "db"}))
    desk.apply(config("a", labels={"app": "web"}))
    desk.apply(config("a", labels={"app": "web"}, x="1"))
    desk.apply(config("a", labels={"app": "db"}, x="1"))
    assert [change.type for change in seen] == ["bookmark", "added", "modified", "deleted"]


# --- the fold ---------------------------------------------------------------------------------------------------------------


def fact(name: str) -> bytes:
    return facts.encode(FactSet(1, (Edit(Key("ConfigMap", "default", name), "u", {}, {}, {}, fresh=True),)))


class Reader:
    """A view alone on a log that the test writes."""

    def __init__(self, loop: Any) -> None:
        self.loop, self.bus = loop, MemoryBus()
        self.log = self.bus.log(subjects.FACTS)

    def append(self, name: str) -> None:
        last = self.do(self.log.last())
        self.do(self.log.append(fact(name), expected=last, message_id=f"m{last}"))

    def view(self) -> View:
        view = View(self.bus)
        self.loop.create_task(view.run())
        self.loop.settle()
        return view

    def do(self, work: Any) -> Any:
        task = self.loop.create_task(work)
        self.loop.settle()
        return task.result()


@pytest.fixture
def reader(desk: Any) -> Reader:
    return Reader(desk.loop)


def changes_of(reader: Reader, view: View, after: int) -> tuple[list[int], Any]:
    seen: list[Any] = []
    task = reader.loop.create_task(collect(view.changes(after), seen))
    reader.loop.settle()
    return [revision for revision, _ in seen], task


def test_the_view_is_ready_when_it_has_read_what_there_was(reader: Reader) -> None:
    for name in "abc":
        reader.append(name)
    view = reader.view()
    assert view.ready.is_set() and view.revision == 3 and len(view.store.objects) == 3


def test_who_waits_for_a_revision_goes_on_when_it_is_there(reader: Reader) -> None:
    view = reader.view()
    waiting = [reader.loop.create_task(view.reach(revision)) for revision in (0, 1, 2)]
    reader.loop.settle()
    assert [task.done() for task in waiting] == [True, False, False]
    reader.append("a")
    assert [task.done() for task in waiting] == [True, True, False]
    reader.append("b")
    assert all(task.done() for task in waiting)


def test_changes_that_are_no_longer_in_memory_come_from_the_log(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("admission.view.KEPT_CHANGES", 3)
    view = reader.view()
    for name in "abcde":
        reader.append(name)
    assert changes_of(reader, view, 2)[0] == [3, 4, 5]
    for since in (0, 1):
        found, task = changes_of(reader, view, since)
        assert found == list(range(since + 1, 6)) and not task.done()
    reader.append("f")
    assert changes_of(reader, view, 1)[0][-1] == 6


@pytest.mark.parametrize("snapshots", [(), (2,), (1, 3), (2, 4)])
def test_a_view_that_began_late_tells_what_was_before_as_the_log_has_it(
    reader: Reader, snapshots: tuple[int, ...]
) -> None:
    """As after a restart of admission: the watchers go on where they were."""
    for number, name in enumerate("abcd", 1):
        reader.append(name)
        if number in snapshots:
            kept = reader.view().store.objects.values()
            reader.do(reader.log.put_snapshot(number, facts.encode_snapshot(list(kept), number, 1, {})))
    view = reader.view()
    reader.append("e")
    for since in range(5):
        assert changes_of(reader, view, since)[0] == list(range(since + 1, 6))


def test_what_an_unreadable_entry_brought_is_passed_over(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admission.view.KEPT_CHANGES", 1)
    view = reader.view()
    reader.append("a")
    reader.do(reader.log.append(b"\xff\xff", expected=1, message_id="garbage"))
    reader.append("b")
    reader.append("c")
    assert changes_of(reader, view, 1)[0] == [3, 4]


def test_changes_that_the_log_has_no_more_are_gone(reader: Reader) -> None:
    for name in "abc":
        reader.append(name)
    kept = list(reader.view().store.objects.values())
    reader.do(reader.log.put_snapshot(3, facts.encode_snapshot(kept, 3, 1, {})))
    reader.do(reader.log.trim(3))
    view = reader.view()
    reader.append("d")
    assert changes_of(reader, view, 3)[0] == [4]
    assert isinstance(changes_of(reader, view, 1)[1].exception(), GoneRevision)


def test_who_breaks_off_amid_what_changed_together_misses_nothing(desk: Any) -> None:
    since = desk.view.revision
    desk.apply(config("a"), config("b"), config("c"))
    seen: list[Any] = []
    desk.begin(collect(desk.reads.watch(Filter("ConfigMap"), since), seen))
    assert [change.revision for change in seen] == [since, since, since, since + 1]
    for cut in range(1, 5):
        again: list[Any] = []
        desk.begin(collect(desk.reads.watch(Filter("ConfigMap"), seen[cut - 1].revision), again))
        told = {orjson.loads(change.manifest)["metadata"]["name"] for change in seen[:cut] + again if change.manifest}
        assert told == {"a", "b", "c"}


def test_a_revision_that_jumps_is_no_gap(reader: Reader) -> None:
    """A change set of several parts has the sequence of its last part: nothing is missing between two of them."""
    reader.append("a")
    reader.do(reader.log.put_snapshot(1, facts.encode_snapshot([], 1, 1, {})))
    view = reader.view()
    for name, revision in (("b", 5), ("c", 6)):
        reader.do(view._take(Entry(revision, fact(name), {})))
    assert changes_of(reader, view, 1)[0] == [5, 6]
    assert changes_of(reader, view, 5)[0] == [6]


def test_a_fact_that_cannot_be_read_is_parked_and_the_view_goes_on(reader: Reader) -> None:
    reader.append("a")
    reader.do(reader.log.append(b"\xff\xff", expected=1, message_id="bad"))
    view = reader.view()
    assert view.ready.is_set() and view.revision == 2
    reader.append("b")
    assert view.revision == 3 and len(view.store.objects) == 2
    assert [parked.source for parked in reader.do(reader.bus.parked())] == ["fact/2"]


@pytest.mark.parametrize("token", ["zzz", "ä", "_w=="])
def test_a_token_that_was_never_given_is_refused_in_words(desk: Any, token: str) -> None:
    with pytest.raises(BadToken, match="no page token"):
        desk.reads.page(Filter("ConfigMap"), 2, token)
