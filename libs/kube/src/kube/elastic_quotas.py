"""Koordinator's ElasticQuotas as the services name them, and the namespaces that are theirs."""

from dataclasses import dataclass, field

from kube.json_text import read_json
from kube.keys import Key
from kube.objects import Object
from kube.store import Event

ELASTIC_QUOTA = "ElasticQuota.scheduling.sigs.k8s.io"
ROOT_QUOTA = "quota"
"""Stands above all quotas that name no parent: what they share is what nobody outside of quotas uses."""

_NAMESPACES = "quota.scheduling.koordinator.sh/namespaces"


def quota_name(name: str) -> str:
    """The quota ``name`` as a queue: no object can have a name with a slash, so it is no Volcano queue's."""
    return f"{ROOT_QUOTA}/{name}"


def namespaces_of(item: Object) -> list[str]:
    """The namespaces whose pods are in the quota unless they name another: one of its own name, and those that it lists."""
    try:
        listed = read_json(item.annotations.get(_NAMESPACES) or "null")
    except ValueError:
        listed = None
    named = [str(name) for name in listed] if isinstance(listed, list) else []
    return [item.namespace, *named] if item.namespace == item.name else named


@dataclass(slots=True)
class NamespaceQuotas:
    """In which queue the pods of a namespace are that name none. Of several quotas that claim one the first by name has it."""

    queues: dict[str, str] = field(default_factory=dict)
    _claims: dict[str, dict[Key, None]] = field(default_factory=dict)

    def fold(self, event: Event) -> set[str]:
        """Take in a change of an ElasticQuota; returns the namespaces that are in another queue now."""
        before = namespaces_of(event.old) if event.old else []
        after = namespaces_of(event.new) if event.new else []
        for namespace in before:
            self._claims.get(namespace, {}).pop(event.key, None)
        for namespace in after:
            self._claims.setdefault(namespace, {})[event.key] = None
        return {namespace for namespace in {*before, *after} if self._renew(namespace)}

    def _renew(self, namespace: str) -> bool:
        known, claims = self.queues.get(namespace), self._claims.get(namespace)
        if claims:
            self.queues[namespace] = quota_name(min(claims).name)
        else:
            self._claims.pop(namespace, None)
            self.queues.pop(namespace, None)
        return self.queues.get(namespace) != known
