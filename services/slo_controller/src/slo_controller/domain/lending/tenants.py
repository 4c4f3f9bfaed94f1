"""The pods of a node: what each is to lending. What they use is not of them but of what was measured."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kube import Key, Manifest, Object
from kube.bindings import template_of
from kube.colocation import LENT_BANDS, band_with_default, qos_of
from kube.json_text import read_json
from kube.pods import is_finished, sound_pod_request
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.terms import NOTHING, Use

PROD = "prod"
PLACED = "scheduling.koordinator.sh/resource-status"
"""The annotation with the CPUs and the NUMA nodes that a pod was given."""


class Tenant(NamedTuple):
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


class _Traits(NamedTuple):
    """What the pods of one template are alike in."""

    band: str
    qos: str
    request: Use
    zones: tuple[int, ...]


@dataclass(slots=True)
class Tenants:
    """Those of all nodes, kept as facts come."""

    on: dict[str, dict[Key, Tenant]] = field(default_factory=dict)
    _read: tuple[Manifest, Manifest, _Traits] | None = None
    """The template and the metadata that were read last, with what they say: pods that come together share theirs."""

    def fold(self, old: Object | None, new: Object | None) -> Iterable[str]:
        """Take in a new version of a pod, or that it is gone; the nodes on which something changed by that."""
        before, after = _node(old), _node(new)
        if old is not None and before and before != after:
            self._leave(before, old.key)
            yield before
        if new is not None and after:
            there = self.on.setdefault(after, {})
            known = there.get(new.key)
            if known is not None and old is not None and old.body is new.body and old.metadata is new.metadata:
                return
            tenant = Tenant(new.key, *self._traits(new))
            if known != tenant:
                there[new.key] = tenant
                yield after

    def _traits(self, pod: Object) -> _Traits:
        template = template_of(pod.body)
        read = self._read
        if read is None or read[0] is not template or read[1] is not pod.metadata:
            read = self._read = template, pod.metadata, _traits(pod)
        return read[2]

    def _leave(self, node: str, key: Key) -> None:
        tenants = self.on.get(node, {})
        tenants.pop(key, None)
        if not tenants:
            self.on.pop(node, None)


def may_move(old: Object | None, new: Object | None) -> bool:
    """Whether with a change a pod may hold something else than before, or on another node."""
    if old is None or new is None:
        return bool(_node(old or new))
    return old.body is not new.body or old.metadata is not new.metadata or is_finished(old) is not is_finished(new)


def _node(pod: Object | None) -> str:
    """Where a pod holds something; empty where it does not."""
    node = pod.spec.get("nodeName") if pod is not None else None
    return str(node) if pod is not None and node and not is_finished(pod) else ""


def _traits(pod: Object) -> _Traits:
    request = sound_pod_request(pod.spec)
    return _Traits(
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
