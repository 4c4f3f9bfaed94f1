"""Facts of inference services and their pods, as events."""

from collections.abc import Callable
from typing import Any

import pytest

from inference_gateway.domain.serving.directory import Directory
from kube import Event, Key, Manifest, Object

SERVICE = "InferenceService.serving.kserve.io"


def service(name: str, traffic: dict[str, int] | None = None, namespace: str = "team", **more: Any) -> Object:
    """An InferenceService with these shares of its revisions; without any it is in standard mode."""
    shares = [{"revisionName": revision, "percent": percent} for revision, percent in (traffic or {}).items()]
    mode = "Standard" if traffic is None else "Knative"
    status = {"deploymentMode": mode, "components": {"predictor": {"traffic": shares}}}
    spec = {"predictor": {"model": {}}, **more.pop("spec", {})}
    key = Key(SERVICE, namespace, name)
    return Object(key, f"uid-{namespace}-{name}", {"annotations": more}, {"spec": spec}, status)


def pod(name: str, app: str, address: str, ready: bool = True, namespace: str = "team", **spec: Any) -> Object:
    """A pod of the component or revision ``app``."""
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status: Manifest = {"phase": "Running", "podIP": address, "conditions": conditions}
    body = {"spec": {"containers": [{"name": "kserve-container"}], **spec}}
    return Object(Key("Pod", namespace, name), f"uid-{name}", {"labels": {"app": f"isvc.{app}"}}, body, status)


class Facts:
    """A directory, and the facts that it was told."""

    def __init__(self) -> None:
        self.directory = Directory("example.com")
        self._there: dict[Key, Object] = {}

    def put(self, *items: Object) -> bool:
        """They are so from now on. Whether it matters."""
        events = [Event(self._there.get(item.key), item) for item in items]
        self._there.update((item.key, item) for item in items)
        return self.directory.fold(events)

    def remove_service(self, name: str) -> None:
        """There is no InferenceService of this name any more."""
        if (item := self._there.pop(Key(SERVICE, "team", name), None)) is not None:
            self.directory.fold([Event(item, None)])


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
def make_service() -> Callable[..., Object]:
    return service


@pytest.fixture
def make_pod() -> Callable[..., Object]:
    return pod
