"""The pods of a node: what each is to lending. What they use is not of them but of what was measured."""

from collections.abc import Iterable
from dataclasses import dataclass

from kube import Key, Object
from kube.colocation import LENT_BANDS, band_with_default, qos_of
from kube.json_text import read_json
from kube.pods import is_finished, sound_pod_request
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.terms import NOTHING, Use
from slo_controller.domain.names import POD

PROD = "prod"
PLACED = "scheduling.koordinator.sh/resource-status"
"""The annotation with the CPUs and the NUMA nodes that a pod was given."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod that holds something of a node. ``zones`` are the NUMA nodes that it was given, empty where it was given none."""

    key: Key
    band: str
    qos: str
    request: Use
    zones: tuple[int, ...] = ()

    @property
    def is_online(self) -> bool:
        """Whether what it holds cannot be lent."""
        return self.band not in LENT_BANDS

    @property
    def is_pinned(self) -> bool:
        """Whether nobody else may use its CPUs, used or not."""
        return self.qos == "LSE"


@dataclass(slots=True)
class Tenants:
    """Those of all nodes, kept as facts come."""

    on: dict[str, dict[Key, Tenant]]

    @classmethod
    def none(cls) -> "Tenants":
        return cls({})

    def fold(self, old: Object | None, new: Object | None) -> Iterable[str]:
        """Take in a new version of a pod, or that it is gone; the nodes on which something changed by that."""
        before, after = _node(old), _node(new)
        if before and before != after:
            self._leave(before, old.key if old else Key(POD, "", ""))
            yield before
        if new is not None and after:
            tenant = _tenant(new, self.on.get(after, {}).get(new.key), old)
            if self.on.setdefault(after, {}).get(new.key) != tenant:
                self.on[after][new.key] = tenant
                yield after

    def _leave(self, node: str, key: Key) -> None:
        tenants = self.on.get(node, {})
        tenants.pop(key, None)
        if not tenants:
            self.on.pop(node, None)


def _node(pod: Object | None) -> str:
    """Where a pod holds something; empty where it does not."""
    return str(pod.spec.get("nodeName") or "") if pod is not None and not is_finished(pod) else ""


def _tenant(pod: Object, known: Tenant | None, old: Object | None) -> Tenant:
    if known is not None and old is not None and old.body is pod.body and old.metadata is pod.metadata:
        return known
    request = sound_pod_request(pod.spec)
    return Tenant(
        pod.key,
        band_with_default(pod.labels, pod.spec),
        qos_of(pod.labels, pod.spec),
        Use(request.get("cpu", 0), request.get("memory", 0)),
        _zones(pod.annotations.get(PLACED)),
    )


def _zones(text: str | None) -> tuple[int, ...]:
    try:
        listed = read_json(text or "{}").get("numaNodeResources") or ()
        return tuple(sorted({int(one.get("node") or 0) for one in listed}))
    except (AttributeError, TypeError, ValueError):
        return ()


@dataclass(frozen=True, slots=True)
class Held:
    """What online pods hold of a node, by each of the ways to count it. ``unmeasured`` of them have no sample yet."""

    used: Use = NOTHING
    requested: Use = NOTHING
    most: Use = NOTHING
    pods: int = 0
    unmeasured: int = 0

    def by(self, policy: str, name: str) -> int:
        """By the policies of the configuration."""
        counted = {"usage": self.used, "request": self.requested, "maxUsageRequest": self.most}[policy]
        return counted.of(name)


def held(tenants: Iterable[Tenant], seen: Measured) -> Held:
    """What is held by those of ``tenants`` that are online.

    One without a sample counts with its request, whatever the policy: it is about to use it. Of a pinned one the CPUs count that
    it asked for, as nobody else may have them. What was measured of pods that are gone counts no more.
    """
    used = requested = most = NOTHING
    pods = unmeasured = 0
    for tenant in tenants:
        if not tenant.is_online:
            continue
        sample, request = seen.pods.get(tenant.key), tenant.request
        using = request if sample is None else sample
        pods, unmeasured = pods + 1, unmeasured + (sample is None)
        used += Use(request.cpu, using.memory) if tenant.is_pinned else using
        requested += request
        most += request.at_least(using)
    return Held(used, requested, most, pods, unmeasured)
