"""What the proxy is told about the services: a pure function of who there is and who is ready."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_gateway.domain.envoy.clusters import Place, endpoints, replica_cluster
from inference_gateway.domain.envoy.layout import Layout, cluster_name
from inference_gateway.domain.envoy.routes import route_configuration, routes_of, virtual_host
from inference_gateway.domain.serving.directory import Directory
from inference_gateway.domain.serving.replica import Pool, Replica
from inference_gateway.domain.serving.service import ALL, Component, Service
from kube import Key, Manifest

_Ready = Mapping[Pool, tuple[Replica, ...]]


@dataclass(slots=True)
class Configuration:
    """``clusters`` and ``endpoints`` are by the names of the clusters; ``routable`` are the pools that requests are sent to."""

    routes: Manifest = field(default_factory=dict)
    clusters: dict[str, Manifest] = field(default_factory=dict)
    endpoints: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    routable: frozenset[Pool] = frozenset()


@dataclass(slots=True)
class _Told:
    """Of one service. ``seen`` is what it was made of: where that is the same, it is the same."""

    seen: tuple[object, ...]
    virtual_hosts: list[Manifest]
    clusters: dict[str, Manifest] = field(default_factory=dict)
    endpoints: dict[str, tuple[Place, ...]] = field(default_factory=dict)


Known = dict[Key, _Told]
"""What was told of each service the last time: those of which nothing changed are not looked at again."""


def configuration(directory: Directory, layout: Layout, known: Known | None = None) -> Configuration:
    """The services that have a replica that is ready are told; for all others the proxy asks, request by request.

    With ``known``, which is brought up to date, it is the same in less time.
    """
    known = {} if known is None else known
    awake = sorted(key for key, one in directory.services.items() if _is_awake(directory, one))
    for key in known.keys() - set(awake):
        del known[key]
    found, virtual_hosts, routable = Configuration(), list[Manifest](), set[Pool]()
    for key in awake:
        service = directory.services[key]
        ready = {pool: directory.ready(pool) for pool in service.pools()}
        hosts = directory.hosts_of(key)
        seen = (service, tuple(ready.items()), hosts)
        told = known.get(key)
        if told is None or told.seen != seen:
            told = known[key] = _told(seen, service, ready, hosts, layout)
        virtual_hosts += told.virtual_hosts
        found.clusters.update(told.clusters)
        found.endpoints.update(told.endpoints)
        routable.update(pool for pool, replicas in ready.items() if replicas)
    found.routes, found.routable = route_configuration(virtual_hosts), frozenset(routable)
    return found


def _is_awake(directory: Directory, service: Service) -> bool:
    if service.is_stopped or not any(directory.ready(pool) for pool in service.pools()):
        return False
    return all(not part.split or sum(share for _, share in part.split) == ALL for part in service.parts.values())


def _told(
    seen: tuple[object, ...], service: Service, ready: _Ready, hosts: Mapping[str, list[str]], layout: Layout
) -> _Told:
    found = _Told(seen, [_virtual_host(service, ready, one, sorted(hosts[one])) for one in sorted(hosts)])
    for part in service.parts.values():
        for pool, _ in part.split:
            _add_pool(found, pool, ready[pool], part, layout)
    return found


def _virtual_host(service: Service, ready: _Ready, component: str, hosts: list[str]) -> Manifest:
    name = "/".join(filter(None, (service.key.namespace, service.key.name, component)))
    explainer = service.parts.get("explainer") if component == service.entry else None
    routes = routes_of(name, service.parts[component], explainer, lambda pool: bool(ready[pool]))
    return virtual_host(name, hosts, routes)


def _add_pool(found: _Told, pool: Pool, replicas: tuple[Replica, ...], part: Component, layout: Layout) -> None:
    """Also one without a replica, so that requests that are on their way there come to wait."""
    for grpc in (False, True):
        name = cluster_name(pool, grpc=grpc)
        found.clusters[name] = replica_cluster(pool, part.limit, grpc=grpc)
        found.endpoints[name] = endpoints(replicas, layout, grpc=grpc)
