"""What a client can do, written once for both kinds of clients: what is asked, and what the answer comes to.

A call is a conversation: it yields questions, is sent the server's answers, and returns its result. A stream is one
question and what each message of the answer comes to. Neither knows how questions travel.

Kinds are named as users do (``job``, ``pods``, ``jobs.batch``) or with their group (``Job.batch.volcano.sh``); an empty
namespace means ``default`` for one object and all namespaces for lists.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
from google.protobuf.message import Message

from kube import Key, Manifest
from tidegate.api.v1 import api_pb2
from tidegate.client import answers, requests
from tidegate.client.results import Applied, Change, Explanation, Happening, Page, SystemStatus, User

T = TypeVar("T")


class Question(NamedTuple):
    """One request, to a method of TidegateService. A ``repeatable`` one may be asked twice and be done once."""

    method: str
    request: Message
    repeatable: bool = True


Call = Generator[Question, Any, T]


@dataclass(frozen=True, slots=True)
class Stream(Generic[T]):
    """A question whose answer comes in messages; ``read`` says what each comes to. ``timeout_seconds`` None: no end."""

    question: Question
    read: Callable[[Any], T]
    timeout_seconds: float | None = None


def apply(
    manifests: Sequence[Manifest],
    *,
    dry_run: bool = False,
    replace: bool = False,
    create_only: bool = False,
) -> Call[list[Applied]]:
    """Create or update objects; what was refused is among the results (see ``accepted``).

    What belongs together goes in one request, up to 1,000 objects or 2 MiB; more goes in several, one after the other.
    """
    results: list[Applied] = []
    for part in requests.batches(manifests):
        request = requests.apply_request(part, dry_run=dry_run, replace=replace, create_only=create_only)
        repeatable = dry_run or not (create_only or requests.make_names(part))
        answer: api_pb2.ApplyResponse = yield Question("Apply", request, repeatable)
        results += answers.applied(answer.results, answer.revision)
    return results


def patch(kind: str, name: str, change: requests.Patch, namespace: str = "", *, dry_run: bool = False) -> Call[Applied]:
    """Change fields of an object by a merge patch (a mapping) or a JSON patch (a list of operations).

    It is done to the object as it is when it is written, so that nothing that others change meanwhile is lost.
    """
    request = requests.patch_request(kind, name, namespace, change, dry_run)
    answer: api_pb2.PatchResponse = yield Question("Patch", request, repeatable=dry_run)
    (result,) = answers.applied([answer.result], answer.revision)
    return result


def delete(keys: Iterable[Key], *, grace_seconds: int | None = None, dry_run: bool = False) -> Call[list[Applied]]:
    """Delete objects, each in the time that it asks for or within ``grace_seconds``."""
    request = requests.delete_request(keys, grace_seconds, dry_run)
    # Asked again, it might mean one that was made anew under the same name.
    answer: api_pb2.DeleteResponse = yield Question("Delete", request, repeatable=dry_run)
    return answers.applied(answer.results, answer.revision)


def suspend(kind: str, name: str, namespace: str = "") -> Call[str]:
    """Take a job's pods away and keep the job; says in words what was done."""
    request = api_pb2.SuspendRequest(name=requests.object_name(kind, name, namespace))
    answer: api_pb2.SuspendResponse = yield Question("Suspend", request)
    return answer.message


def resume(kind: str, name: str, namespace: str = "") -> Call[str]:
    """Let a suspended job go on."""
    request = api_pb2.ResumeRequest(name=requests.object_name(kind, name, namespace))
    answer: api_pb2.ResumeResponse = yield Question("Resume", request)
    return answer.message


def scale(kind: str, name: str, replicas: int, *, task: str = "", namespace: str = "") -> Call[str]:
    """Set the replicas of a workload, or of a job's task; ``task`` may be left out where there is one only."""
    named = requests.object_name(kind, name, namespace)
    request = api_pb2.ScaleRequest(name=named, task=task, replicas=replicas)
    answer: api_pb2.ScaleResponse = yield Question("Scale", request)
    return answer.message


def set_scheduling(*, paused: bool, reason: str = "") -> Call[str]:
    """Keep anything from being placed and anybody from being evicted, or let scheduling go on; says what is so now."""
    request = api_pb2.SetSchedulingRequest(paused=paused, reason=reason)
    answer: api_pb2.SetSchedulingResponse = yield Question("SetScheduling", request)
    return answer.message


def get(kind: str, name: str, namespace: str = "", *, at_least_revision: int = 0) -> Call[Manifest]:
    """One object. Raises NotFound."""
    named = requests.object_name(kind, name, namespace)
    request = api_pb2.GetRequest(name=named, at_least_revision=at_least_revision)
    answer: api_pb2.GetResponse = yield Question("Get", request)
    manifest: Manifest = orjson.loads(answer.manifest)
    return manifest


def page(
    kind: str,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    at_least_revision: int = 0,
    token: str = "",
    size: int = requests.PAGE,
) -> Call[Page]:
    """The first ``size`` objects of a kind by namespace and name, or those behind the page that gave ``token``."""
    request = api_pb2.ListRequest(
        kind=kind,
        namespace=namespace,
        label_selector=label_selector,
        field_selector=field_selector,
        page_size=size,
        page_token=token,
        at_least_revision=at_least_revision,
    )
    return answers.page((yield Question("List", request)))


def all_of(
    kind: str,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    at_least_revision: int = 0,
) -> Call[list[Manifest]]:
    """All objects of a kind by namespace and name."""
    found: list[Manifest] = []
    token = ""
    while True:
        part = yield from page(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            at_least_revision=at_least_revision,
            token=token,
        )
        found += part.manifests
        token = part.token
        if not token:
            return found


def watch(
    kind: str = "",
    namespace: str = "",
    *,
    name: str = "",
    label_selector: str = "",
    from_revision: int = 0,
    timeout_seconds: float | None = None,
) -> Stream[Change]:
    """What changes, without end or until TimedOut; from revision 0 it begins with what there is. Raises Expired."""
    request = api_pb2.WatchRequest(
        kind=kind, namespace=namespace, name=name, label_selector=label_selector, from_revision=from_revision
    )
    return Stream(Question("Watch", request), answers.change, timeout_seconds)


def explain(kind: str, name: str, namespace: str = "") -> Call[Explanation]:
    """Why an object waits, or where it went."""
    request = api_pb2.ExplainRequest(name=requests.object_name(kind, name, namespace))
    return answers.explanation((yield Question("Explain", request)))


def snapshot(decision_id: str = "") -> Stream[bytes]:
    """All that decisions depend on, now or when one was made, as the content of a snapshot file; raises NotFound."""
    return Stream(Question("Snapshot", api_pb2.SnapshotRequest(decision_id=decision_id)), _data)


def logs(
    pod: str,
    namespace: str = "",
    *,
    container: str = "",
    follow: bool = False,
    tail: int = 0,
    previous: bool = False,
    since_ms: int = 0,
    timestamps: bool = False,
) -> Stream[bytes]:
    """What a container wrote, in pieces: the last ``tail`` lines (0: all), with ``follow`` until it has ended.

    ``previous``: what it wrote before it was started again. ``since_ms``: only lines that were written from then on, in
    milliseconds since the epoch. ``timestamps``: each line behind the time when it was written.
    """
    request = api_pb2.LogsRequest(
        namespace=namespace,
        pod=pod,
        container=container,
        follow=follow,
        tail=tail,
        previous=previous,
        since_ms=since_ms,
        timestamps=timestamps,
    )
    return Stream(Question("Logs", request), _data)


def events(
    namespace: str = "", *, about: Key | None = None, limit: int = 0, dead: bool = False, writes: bool = False
) -> Call[list[Happening]]:
    """What was decided and done of late, oldest first; with ``dead`` the messages that could not be handled.

    With ``writes`` what users wrote, and who (the ``source`` of each), instead.
    """
    return answers.happenings(
        (yield Question("Events", requests.events_request(namespace, about, limit, dead=dead, writes=writes)))
    )


def status() -> Call[SystemStatus]:
    """The services, and how far each has come."""
    return answers.system_status((yield Question("Status", api_pb2.StatusRequest())))


def whoami() -> Call[User]:
    """Who the caller is."""
    return answers.user((yield Question("WhoAmI", api_pb2.WhoAmIRequest())))


def _data(answer: Any) -> bytes:
    data: bytes = answer.data
    return data
