"""The names under which pods know each other: what a cluster's DNS would answer."""

from collections.abc import Iterator

from kube import Key, Object, Store

_ASKED = {
    "InferenceService.serving.kserve.io": ("", "-predictor", "-transformer", "-explainer"),
    "InferenceGraph.serving.kserve.io": ("",),
}
"""Kinds whose names lead to the request path: what such an object and its components are called."""
ASKED = frozenset(_ASKED)
MOST_ASKED = 2000
"""Of a namespace: each pod in it has a file of these names."""
SUFFIXES = ("", ".{ns}", ".{ns}.svc", ".{ns}.svc.cluster.local")


def host_entries(store: Store, namespace: str) -> list[tuple[str, tuple[str, ...]]]:
    """Of every pod of a namespace that has an address: the address and its names, by address.

    A pod is known by its own name, and by ``<hostname>.<subdomain>`` in all the forms of a Service's DNS names where it
    names a subdomain. A Service's own name stands for the pods that it selects, the first by name first.
    """
    names: dict[str, dict[str, None]] = {}
    pods = sorted(
        (pod for pod in store.in_namespace("Pod", namespace) if pod.status.get("podIP") and _lives(pod)),
        key=lambda pod: pod.name,
    )
    for pod in pods:
        own = names.setdefault(pod.status["podIP"], {})
        own.update(dict.fromkeys(_pod_names(pod)))
    for service in sorted(store.in_namespace("Service", namespace), key=lambda item: item.name):
        selector = service.spec.get("selector") or {}
        for pod in pods:
            if selector and selector.items() <= pod.labels.items():
                names[pod.status["podIP"]].update(dict.fromkeys(_forms(service.name, namespace)))
    return [(address, tuple(own)) for address, own in names.items()]


def asked_entries(store: Store, namespace: str, gateway: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of what scales to zero, each of which leads to the address ``gateway``: there requests wait for a replica.

    They stand before the pods' own addresses, which a program tries next where the gateway does not listen at its port.
    """
    found = sorted((item.name, item.kind) for kind in _ASKED for item in store.in_namespace(kind, namespace))
    for name, kind in found[:MOST_ASKED]:
        own = store.objects[Key(kind, namespace, name)]
        parts = (part for part in _ASKED[kind] if not part or own.spec.get(part[1:]) is not None)
        yield gateway, tuple(form for part in parts for form in _forms(f"{name}{part}", namespace))


def _lives(pod: Object) -> bool:
    return pod.status.get("phase") not in ("Succeeded", "Failed")


def _pod_names(pod: Object) -> Iterator[str]:
    hostname = str(pod.spec.get("hostname") or pod.name)
    yield pod.name
    if hostname != pod.name:
        yield hostname
    subdomain = pod.spec.get("subdomain")
    if subdomain:
        yield from _forms(f"{hostname}.{subdomain}", pod.namespace)


def _forms(name: str, namespace: str) -> Iterator[str]:
    for suffix in SUFFIXES:
        yield name + suffix.format(ns=namespace)
