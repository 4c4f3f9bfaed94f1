"""What the proxy is told about the services: a pure function of who there is and who is ready."""

from dataclasses import dataclass, field

from inference_gateway.domain.envoy.clusters import Place, endpoints, replica_cluster
from inference_gateway.domain.envoy.layout import Layout, cluster_name
from inference_gateway.domain.envoy.routes import route_configuration, routes_of, virtual_host
from inference_gateway.domain.serving.directory import Directory
from inference_gateway.domain.serving.replica import Pool
from inference_gateway.domain.serving.service import ALL, Component, Service
from kube import Key, Manifest


@dataclass(slots=True)
class Configuration:
    """``clusters`` and ``endpoints`` are by the names of the clusters; ``routable`` are the pools that requests are sent to."""

    routes: Manifest = field(default_factory=dict)
    clusters: dict[str, Manifest] = field(default_factory=dict)
    endpoints: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    routable: frozenset[Pool] = frozenset()


def configuration(directory: Directory, layout: Layout) -> Configuration:
    """The services that have a replica that is ready are told; for all others the proxy asks, request by request."""
    hosts: dict[Key, dict[str, list[str]]] = {}
    awake = {key for key, one in directory.services.items() if _is_awake(directory, one)}
    for host, (key, component) in directory.hosts().items():
        if key in awake:
            hosts.setdefault(key, {}).setdefault(component, []).append(host)
    found = Configuration()
    virtual_hosts: list[Manifest] = []
    for key in sorted(awake):
        service = directory.services[key]
        for component, names in sorted(hosts.get(key, {}).items()):
            virtual_hosts.append(_virtual_host(directory, service, component, sorted(names)))
        for part in service.parts.values():
            for pool, _ in part.split:
                _add_pool(found, directory, pool, part, layout)
    found.routes = route_configuration(virtual_hosts)
    pools = {pool for key in awake for pool in directory.services[key].pools()}
    found.routable = frozenset(pool for pool in pools if directory.ready(pool))
    return found


def _is_awake(directory: Directory, service: Service) -> bool:
    sound = all(not part.split or sum(share for _, share in part.split) == ALL for part in service.parts.values())
    return sound and not service.is_stopped and any(directory.ready(pool) for pool in service.pools())


def _virtual_host(directory: Directory, service: Service, component: str, hosts: list[str]) -> Manifest:
    name = "/".join(filter(None, (service.key.namespace, service.key.name, component)))
    explainer = service.parts.get("explainer") if component == service.entry else None
    routes = routes_of(name, service.parts[component], explainer, lambda pool: bool(directory.ready(pool)))
    return virtual_host(name, hosts, routes)


def _add_pool(found: Configuration, directory: Directory, pool: Pool, part: Component, layout: Layout) -> None:
    """Also those without a replica, so that requests that are on their way there come to wait."""
    replicas = directory.ready(pool)
    for grpc in (False, True):
        name = cluster_name(pool, grpc=grpc)
        found.clusters[name] = replica_cluster(pool, part.limit, grpc=grpc)
        found.endpoints[name] = endpoints(replicas, layout, grpc=grpc)
