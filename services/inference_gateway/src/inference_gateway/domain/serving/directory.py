"""All inference services and graphs, and their ready replicas, as the facts have them."""

from collections.abc import Iterable, Mapping

from inference_gateway.domain.serving.names import model_host, model_of, without_port
from inference_gateway.domain.serving.replica import Pool, Replica, answers, pool_of, replica_of
from inference_gateway.domain.serving.service import KINDS, Service, read
from kube import Event, Key, Manifest

POD = "Pod"
_NO_HOSTS: dict[str, list[str]] = {}


def concerns(kind: str, metadata: Manifest) -> bool:
    """Whether a new object can matter to the request path: of pods only replicas of inference services."""
    return answers(metadata) if kind == POD else kind in KINDS


class Directory:
    """Who is asked under which name, and who may answer."""

    def __init__(self, domain: str) -> None:
        self.domain = domain
        self.services: dict[Key, Service] = {}
        self._ready: dict[Pool, dict[str, Replica]] = {}
        self._hosts: dict[str, tuple[Key, str]] | None = None
        self._hosts_of: dict[Key, dict[str, list[str]]] = {}
        self._entries: dict[Pool, Key] | None = None

    def fold(self, events: Iterable[Event]) -> bool:
        """Take in what changed. Whether it matters to anybody's requests."""
        found = [
            self._fold_pod(event) if event.key.kind == POD else self._fold_service(event)
            for event in events
            if event.key.kind == POD or event.key.kind in KINDS
        ]
        return any(found)

    def ready(self, pool: Pool) -> tuple[Replica, ...]:
        """The replicas of ``pool`` that serve, by name."""
        return tuple(replica for _, replica in sorted(self._ready.get(pool, {}).items()))

    def hosts(self) -> dict[str, tuple[Key, str]]:
        """Every host with the service and the component that it means; one that two could mean is the first one's, by name.

        A model of which several services say that it is theirs is nobody's.
        """
        if self._hosts is None:
            found: dict[str, tuple[Key, str]] = {}
            listed = [(key, list(one.hosts(self.domain))) for key, one in sorted(self.services.items())]
            for place in range(max((len(hosts) for _, hosts in listed), default=0)):
                for key, hosts in listed:
                    if place < len(hosts):
                        found.setdefault(hosts[place][0], (key, hosts[place][1]))
            self._hosts, self._hosts_of = {**self._alone(found), **found, **self._models()}, {}
            for host, (key, component) in self._hosts.items():
                self._hosts_of.setdefault(key, {}).setdefault(component, []).append(host)
        return self._hosts

    def hosts_of(self, service: Key) -> dict[str, list[str]]:
        """The hosts that mean the service, by the component that each means. Another dictionary once any of them changed."""
        self.hosts()
        return self._hosts_of.get(service, _NO_HOSTS)

    def meant(self, host: str, path: str) -> tuple[Service, str] | None:
        """The service and the component that a request means; None if there is none, or more than one."""
        known = self.hosts()
        found = known.get(without_port(host)) or known.get(model_host(model_of(path)))
        if found is None:
            return None
        service, component = self.services[found[0]], found[1]
        return service, asked_component(service, component, path)

    def borne_by(self, pool: Pool) -> Key | None:
        """The service whose requests come to ``pool`` first; None where they come by another one."""
        if self._entries is None:
            listed = sorted(self.services.items())
            self._entries = {pool: key for key, one in listed for pool, _ in one.parts[one.entry].split}
        return self._entries.get(pool)

    def namesakes(self, host: str) -> list[str]:
        """The services, with their namespaces, that are called ``host``."""
        name = without_port(host)
        return [f"{name}.{key.namespace}" for key, one in sorted(self.services.items()) if name in one.own_names()]

    def sharing(self, path: str) -> list[str]:
        """The services that answer for the model of ``path``, if there are several."""
        model = model_of(path)
        return [f"{key.name}.{key.namespace}" for key, one in sorted(self.services.items()) if model in one.models]

    def _alone(self, known: Mapping[str, tuple[Key, str]]) -> dict[str, tuple[Key, str]]:
        """The names that pods use within a namespace, where only one namespace has a service of that name."""
        meant: dict[str, list[tuple[Key, str]]] = {}
        for key, service in sorted(self.services.items()):
            for name in service.own_names():
                meant.setdefault(name, []).append(known[f"{name}.{key.namespace}"])
        return {name: of[0] for name, of in meant.items() if len({key.namespace for key, _ in of}) == 1}

    def _models(self) -> dict[str, tuple[Key, str]]:
        owners: dict[str, list[Service]] = {}
        for service in self.services.values():
            for host in service.model_hosts():
                owners.setdefault(host, []).append(service)
        return {host: (of[0].key, of[0].entry) for host, of in owners.items() if len(of) == 1}

    def _fold_service(self, event: Event) -> bool:
        before = self.services.get(event.key)
        now = read(event.new) if event.new is not None and not event.new.deleting else None
        if now == before:
            return False
        if now is None:
            del self.services[event.key]
        else:
            self.services[event.key] = now
        self._entries = None
        if before is None or now is None or before.names() != now.names():
            self._hosts = None
        return True

    def _fold_pod(self, event: Event) -> bool:
        pools = [(pool_of(pod), pod) for pod in (event.old, event.new) if pod is not None]
        before = {pool: self.ready(pool) for pool, _ in pools if pool is not None}
        for pool, pod in pools:
            replica = replica_of(pod) if pod is event.new else None
            if pool is None:
                continue
            if replica is not None:
                self._ready.setdefault(pool, {})[pod.name] = replica
            elif pool in self._ready:
                self._ready[pool].pop(pod.name, None)
                if not self._ready[pool]:
                    del self._ready[pool]
        return any(self.ready(pool) != replicas for pool, replicas in before.items())


def asked_component(service: Service, component: str, path: str) -> str:
    """Whom a request for ``component`` goes to: explanations are the explainer's, if there is one."""
    wants = path.partition("?")[0].endswith(":explain") and component == service.entry
    return "explainer" if wants and "explainer" in service.parts else component
