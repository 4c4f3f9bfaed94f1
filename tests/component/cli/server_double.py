"""A server that only pretends: objects in a dict, answers by script, and a record of what was asked."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from kube import Key, Manifest, find_kind, key_of, merge
from kube.selectors import parse_fields, parse_labels
from tidegate.api.v1 import api_pb2, api_pb2_grpc

TOKEN = "let-me-in"
Names = dict[str, list[tuple[str, str, str]]]


class ServerDouble(api_pb2_grpc.TidegateServiceServicer):
    """Stores what is applied; ``refusals`` (by object name) and ``failures`` (by call) are its script."""

    def __init__(self) -> None:
        self.objects: dict[Key, Manifest] = {}
        self.revision = 1
        self.asked: dict[str, list[Any]] = defaultdict(list)
        self.refusals: Names = {}
        self.warnings: dict[str, str] = {}
        self.failures: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.broken_watches = 0
        self.ends_watches = False
        self.lingering_seconds = 0.0
        self.logs: dict[str, list[bytes]] = {}
        self.lines: dict[str, list[str]] = {}
        self.snapshots: dict[str, bytes] = {}
        self.events: list[api_pb2.Event] = []
        self.services: list[api_pb2.ServiceStatus] = []
        self.page_size = 2
        self.patched = "configured"
        """What becomes of patches."""
        self._changes: list[tuple[str, Manifest, int]] = []
        self._changed = threading.Condition()
        self._watched = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        api_pb2_grpc.add_TidegateServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        """No call is answered any more."""
        self._server.stop(0).wait()

    def put(self, manifest: Manifest) -> None:
        """An object is there, or is so now."""
        key = key_of(manifest)
        with self._changed:
            kind = "modified" if key in self.objects else "added"
            self.revision += 1
            metadata = {"uid": f"uid-{key.name}", **({"namespace": key.namespace} if key.namespace else {})}
            stored = merge({"metadata": metadata}, manifest)
            self.objects[key] = stored
            self._changes.append((kind, stored, self.revision))
            self._changed.notify_all()

    def remove(self, key: Key) -> None:
        """An object is gone."""
        with self._changed:
            gone = self.objects.pop(key, None)
            if gone is None:
                return
            self.revision += 1
            self._changes.append(("deleted", gone, self.revision))
            self._changed.notify_all()

    def soon(self, seconds: float, action: Any, *arguments: Any) -> None:
        """Something happens while a command waits."""
        timer = threading.Timer(seconds, action, arguments)
        timer.daemon = True
        timer.start()

    def when_watched(self, *actions: Any) -> None:
        """These things happen, in their order, once a command that is begun afterwards has heard what there is and watches."""
        self._watched.clear()

        def act() -> None:
            self._watched.wait()
            for action in actions:
                action()

        threading.Thread(target=act, daemon=True).start()

    # --- the calls -----------------------------------------------------------------------------------------------

    def Apply(self, request: Any, context: Any) -> Any:
        self._begin("Apply", request, context)
        results = [self._applied(json.loads(manifest), request) for manifest in request.manifests]
        return api_pb2.ApplyResponse(results=results, revision=self.revision)

    def ApplyStream(self, request_iterator: Any, context: Any) -> Iterator[Any]:
        for request in request_iterator:
            self._begin("ApplyStream", request, context)
            first, *others = map(self._answer, (request.apply, *request.more))
            yield api_pb2.ApplyStreamResponse(applied=first, more=others)

    def _answer(self, request: Any) -> Any:
        results = [self._applied(json.loads(manifest), request) for manifest in request.manifests]
        return api_pb2.ApplyResponse(results=results, revision=self.revision)

    def _applied(self, manifest: Manifest, request: Any) -> Any:
        key = key_of(manifest)
        result = api_pb2.ApplyResult(name=_name(key), outcome="created")
        if key.name in self.warnings:
            result.warnings.append(self.warnings[key.name])
        if self._refuse(key.name, result):
            return result
        old = self.objects.get(key)
        if old is not None:
            result.outcome = "unchanged" if merge(old, manifest) == old else "configured"
        if not request.dry_run:
            self.put(manifest)
        return result

    def _refuse(self, name: str, result: Any) -> bool:
        if name not in self.refusals:
            return False
        result.outcome = "refused"
        result.errors.extend(
            api_pb2.FieldError(path=path, value=value, rule=rule) for path, value, rule in self.refusals[name]
        )
        return True

    def Patch(self, request: Any, context: Any) -> Any:
        self._begin("Patch", request, context)
        self._find(request.name, context)
        result = api_pb2.ApplyResult(name=request.name, outcome=self.patched)
        self._refuse(request.name.name, result)
        return api_pb2.PatchResponse(result=result, revision=self.revision)

    def Delete(self, request: Any, context: Any) -> Any:
        self._begin("Delete", request, context)
        results = []
        for name in request.names:
            key = Key(find_kind(name.kind).id, name.namespace, name.name)
            if key not in self.objects:
                results.append(api_pb2.ApplyResult(name=_name(key), outcome="refused", message=f"{key} not found"))
                continue
            uid = self.objects[key]["metadata"]["uid"]
            results.append(api_pb2.ApplyResult(name=_name(key), outcome="deleted", uid=uid))
            if not request.dry_run and self.lingering_seconds:
                self.soon(self.lingering_seconds, self.remove, key)
            elif not request.dry_run:
                self.remove(key)
        return api_pb2.DeleteResponse(results=results, revision=self.revision)

    def Suspend(self, request: Any, context: Any) -> Any:
        self._begin("Suspend", request, context)
        self._find(request.name, context)
        return api_pb2.SuspendResponse(message=f"{request.name.name} suspended")

    def Resume(self, request: Any, context: Any) -> Any:
        self._begin("Resume", request, context)
        self._find(request.name, context)
        return api_pb2.ResumeResponse(message=f"{request.name.name} resumed")

    def Scale(self, request: Any, context: Any) -> Any:
        self._begin("Scale", request, context)
        self._find(request.name, context)
        return api_pb2.ScaleResponse(message=f"{request.name.name} scaled to {request.replicas}")

    def SetScheduling(self, request: Any, context: Any) -> Any:
        self._begin("SetScheduling", request, context)
        return api_pb2.SetSchedulingResponse(message="paused" if request.paused else "goes on")

    def Get(self, request: Any, context: Any) -> Any:
        self._begin("Get", request, context)
        manifest = self._find(request.name, context)
        return api_pb2.GetResponse(manifest=json.dumps(manifest).encode(), revision=self.revision)

    def List(self, request: Any, context: Any) -> Any:
        self._begin("List", request, context)
        found = self._selected(request.kind, request.namespace, request.label_selector, request.field_selector)
        start = int(request.page_token or 0)
        end = start + self.page_size
        return api_pb2.ListResponse(
            manifests=[json.dumps(one).encode() for one in found[start:end]],
            next_page_token=str(end) if end < len(found) else "",
            revision=self.revision,
        )

    def Watch(self, request: Any, context: Any) -> Iterator[Any]:
        self._begin("Watch", request, context)
        with self._changed:
            position = request.from_revision or self.revision
            present = self._selected(request.kind, request.namespace, request.label_selector, "")
        if not request.from_revision:
            for manifest in present:
                if request.name in ("", manifest["metadata"]["name"]):
                    yield _change("added", manifest, 1)
        yield api_pb2.WatchResponse(type="bookmark", revision=position)
        if self.broken_watches:
            self.broken_watches -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "the server goes down")
        kind = find_kind(request.kind).id
        self._watched.set()
        while context.is_active():
            is_last = self.ends_watches
            with self._changed:
                fresh = [one for one in self._changes if one[2] > position]
                if not fresh:
                    self._changed.wait(0.02)
            if is_last and not fresh:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "enough")
            for what, manifest, revision in fresh:
                position = revision
                key = key_of(manifest)
                if key.kind == kind and request.name in ("", key.name) and request.namespace in ("", key.namespace):
                    yield _change(what, manifest, revision)

    def Explain(self, request: Any, context: Any) -> Any:
        self._begin("Explain", request, context)
        self._find(request.name, context)
        lines = self.lines.get(request.name.name, [])
        return api_pb2.ExplainResponse(lines=lines, details=json.dumps({"lines": len(lines)}).encode())

    def Snapshot(self, request: Any, context: Any) -> Iterator[Any]:
        self._begin("Snapshot", request, context)
        if request.decision_id not in self.snapshots:
            context.abort(grpc.StatusCode.NOT_FOUND, f"decision {request.decision_id} is not kept any more")
        content = self.snapshots[request.decision_id]
        for start in range(0, len(content), 1000):
            yield api_pb2.SnapshotResponse(data=content[start : start + 1000])

    def Logs(self, request: Any, context: Any) -> Iterator[Any]:
        self._begin("Logs", request, context)
        if request.pod not in self.logs:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{request.pod} has not been placed on a node yet")
        for piece in self.logs[request.pod]:
            yield api_pb2.LogsResponse(data=piece)
            time.sleep(0.01)

    def Events(self, request: Any, context: Any) -> Any:
        self._begin("Events", request, context)
        return api_pb2.EventsResponse(events=self.events)

    def Status(self, request: Any, context: Any) -> Any:
        self._begin("Status", request, context)
        return api_pb2.StatusResponse(
            revision=7, version="9.9", objects={"Pod": 3, "Job.batch": 1}, services=self.services
        )

    def WhoAmI(self, request: Any, context: Any) -> Any:
        self._begin("WhoAmI", request, context)
        return api_pb2.WhoAmIResponse(user="ada", namespaces=["team"])

    # --- what they share -----------------------------------------------------------------------------------------

    def _begin(self, call: str, request: Any, context: Any) -> None:
        self.asked[call].append(request)
        if dict(context.invocation_metadata()).get("authorization") != f"Bearer {TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is unknown")
        if call in self.failures:
            context.abort(*self.failures[call])

    def _find(self, name: Any, context: Any) -> Manifest:
        info = find_kind(name.kind)
        key = Key(info.id, (name.namespace or "default") if info.namespaced else "", name.name)
        if key not in self.objects:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{key} not found")
        return self.objects[key]

    def _selected(self, kind: str, namespace: str, labels: str, fields: str) -> list[Manifest]:
        with_labels, with_fields = parse_labels(labels), parse_fields(fields)
        return [
            manifest
            for key, manifest in sorted(self.objects.items(), key=lambda item: item[0])
            if key.kind == find_kind(kind).id
            and namespace in ("", key.namespace)
            and with_labels(manifest["metadata"].get("labels") or {})
            and with_fields(manifest)
        ]


def _name(key: Key) -> Any:
    return api_pb2.ObjectName(kind=key.kind, namespace=key.namespace, name=key.name)


def _change(what: str, manifest: Manifest, revision: int) -> Any:
    return api_pb2.WatchResponse(type=what, manifest=json.dumps(manifest).encode(), revision=revision)
