"""What a Reservation says of its room, and what a pod says of the reservations that it may use: Koordinator's API."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gang_scheduler.domain.terms.node_rules import NodeTerm, Taint, Toleration, node_term, taints_of, toleration
from gang_scheduler.domain.terms.selectors import Conjunction, equalities, label_selector, matches_all
from kube import Manifest, Object, parse_duration, parse_time
from kube.json_text import read_json
from kube.lent_resources import current
from resources import Amounts, QuantityError, parse_amounts

RESERVATION = "Reservation.scheduling.koordinator.sh"
_PREFIX = "scheduling.koordinator.sh/"
ALLOCATED = _PREFIX + "reservation-allocated"
AFFINITY = _PREFIX + "reservation-affinity"
EXACT = _PREFIX + "exact-match-reservation"
IGNORED = _PREFIX + "reservation-ignored"
ORDER = _PREFIX + "reservation-order"
RESTRICTED_OPTIONS = _PREFIX + "reservation-restricted-options"
DEFAULT_TTL_MS = 24 * 3_600_000
BARRING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Owner:
    """One element of ``owners``: all that it names has to fit a pod."""

    target: Mapping[str, Any]
    controller: Mapping[str, Any]
    selector: Conjunction | None

    def owns(self, pod: Object) -> bool:
        """Whether the pod is meant. An owner that names nothing means nobody."""
        if not self.target and not self.controller and self.selector is None:
            return False
        if self.target and not _is_target(self.target, pod):
            return False
        if self.controller and not _is_controlled(self.controller, pod):
            return False
        return self.selector is None or matches_all(self.selector, pod.labels)


@dataclass(frozen=True, slots=True)
class ReservationTerms:
    """The terms of one reservation. ``restricted`` are the resources of which its owners get no more than is reserved.

    ``expires_at`` is in milliseconds since the epoch, None for never. ``order`` 0 means that none is given.
    """

    owners: tuple[Owner, ...]
    once: bool
    restricts: bool
    restricted: tuple[str, ...]
    closed: bool
    taints: tuple[Taint, ...]
    order: int
    expires_at: int | None
    ahead: bool = False
    """Whether it may be placed over pods that run, and wait there until they have gone."""

    several: bool = False
    """Whether over more than one."""

    flagged: bool = False
    """Whether over those that are flagged for it; else over its owners."""


@dataclass(frozen=True, slots=True)
class ReservationWish:
    """What a pod says: ``required`` that it goes into a reservation or nowhere."""

    ignores: bool = False
    required: bool = False
    name: str = ""
    selector: Conjunction = ()
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    exact: tuple[str, ...] = ()


INDIFFERENT = ReservationWish()


def terms_of_reservation(item: Object) -> ReservationTerms:
    """The terms that a Reservation states, with upstream's defaults: 24 hours, one owner, aligned."""
    spec = item.spec
    options = _json(item.annotations.get(RESTRICTED_OPTIONS))
    policy = spec.get("preAllocationPolicy") or {}
    return ReservationTerms(
        tuple(_owner(one) for one in spec.get("owners") or () if isinstance(one, dict)),
        spec.get("allocateOnce") is not False,
        spec.get("allocatePolicy") == "Restricted",
        tuple(str(name) for name in options.get("resources") or ()),
        bool(spec.get("unschedulable")),
        tuple(taints_of(spec)),
        max(0, _integer(item.labels.get(ORDER))),
        _expires_at(item),
        spec.get("preAllocation") is True,
        policy.get("enableMultiple") is True,
        policy.get("mode") == "Cluster",
    )


def wish_of(pod: Object) -> ReservationWish:
    """What a pod says of reservations; most say nothing."""
    annotations = pod.annotations
    affinity, exact = annotations.get(AFFINITY), annotations.get(EXACT)
    ignores = pod.labels.get(IGNORED) == "true"
    return _wish(ignores, affinity, exact) if ignores or affinity is not None or exact else INDIFFERENT


def reservation_of(annotations: Mapping[str, str]) -> str:
    """The reservation that a pod was given, "" for none."""
    return _told_of(annotations, "name")


def reservation_uid_of(annotations: Mapping[str, str]) -> str:
    """Its uid, which tells it from others of the name; "" where none is said."""
    return _told_of(annotations, "uid")


def fits_exactly(names: tuple[str, ...], requests: Mapping[str, int], reserved: Mapping[str, int]) -> bool:
    """Whether a pod asks of the named resources for exactly what is reserved."""
    return all(requests.get(name, 0) == reserved.get(name, 0) for name in names)


def accepts(wish: ReservationWish, item: Object, terms: ReservationTerms) -> bool:
    """Whether a reservation is one that the pod may use as far as affinity and taints go."""
    if wish.name and wish.name != item.name:
        return False
    if not matches_all(wish.selector, item.labels):
        return False
    if wish.terms is not None and not any(_holds(term, item) for term in wish.terms):
        return False
    barring = [taint for taint in terms.taints if taint.effect in BARRING]
    return all(any(one.covers(taint) for one in wish.tolerations) for taint in barring)


def allocatable_of(item: Object) -> Amounts | None:
    """What the status says is reserved; None where it says nothing that can be read."""
    given = item.status.get("allocatable")
    try:
        return current(parse_amounts(given)) if isinstance(given, dict) else None
    except QuantityError:
        return None


@lru_cache(maxsize=4096)
def _wish(ignores: bool, affinity: str | None, exact: str | None) -> ReservationWish:
    given = _json(affinity)
    required = given.get("requiredDuringSchedulingIgnoredDuringExecution")
    selector = given.get("reservationSelector")
    return ReservationWish(
        ignores,
        affinity is not None,
        str(given.get("name") or ""),
        equalities(selector if isinstance(selector, dict) else None),
        tuple(node_term(term) for term in required.get("reservationSelectorTerms") or ()) if required else None,
        tuple(toleration(one) for one in given.get("tolerations") or ()),
        tuple(str(name) for name in _json(exact).get("resourceNames") or ()),
    )


def _holds(term: NodeTerm, item: Object) -> bool:
    """Whether a selector term holds for a reservation; an empty one holds for none."""
    if not term.labels and not term.fields:
        return False
    return matches_all(term.labels, item.labels) and matches_all(term.fields, {"metadata.name": item.name})


def _owner(one: Mapping[str, Any]) -> Owner:
    return Owner(one.get("object") or {}, one.get("controller") or {}, label_selector(one.get("labelSelector")))


def _is_target(target: Mapping[str, Any], pod: Object) -> bool:
    found = {"uid": pod.uid, "kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name}
    return all(target.get(name) in (None, "", value) for name, value in found.items())


def _is_controlled(controller: Mapping[str, Any], pod: Object) -> bool:
    """Whether any owner reference of the pod is the one meant; its controller only where that is said."""
    if controller.get("namespace") not in (None, "", pod.namespace):
        return False
    named = {name: controller[name] for name in ("uid", "kind", "name", "apiVersion") if controller.get(name)}
    if controller.get("controller") is not None:
        named["controller"] = controller["controller"]
    owners = pod.metadata.get("ownerReferences") or ()
    return any(named.items() <= {"controller": False, **owner}.items() for owner in owners)


def _expires_at(item: Object) -> int | None:
    """``expires`` goes before ``ttl``, which counts from the creation."""
    try:
        if item.spec.get("expires"):
            return parse_time(str(item.spec["expires"]))
        ttl = item.spec.get("ttl")
        span = DEFAULT_TTL_MS if ttl is None else parse_duration(str(ttl))
        return parse_time(item.created) + span if span > 0 else None
    except ValueError:
        return None


def _told_of(annotations: Mapping[str, str], name: str) -> str:
    return str(_json(annotations.get(ALLOCATED)).get(name) or "") if ALLOCATED in annotations else ""


def _json(text: str | None) -> Manifest:
    try:
        read = read_json(text) if text else {}
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _integer(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
