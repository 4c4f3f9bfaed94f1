"""The names under which pods know each other: what a cluster's DNS would answer."""

from collections.abc import Iterator

from kube import Object, Store

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
