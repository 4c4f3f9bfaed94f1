"""Reading an ``expect`` step: each of its matchers with what it wants."""

from collections.abc import Callable
from typing import Any

from kube import Manifest
from testing.scenarios.counts import COUNTED, CountMatcher, EnvMatcher
from testing.scenarios.errors import ScenarioError
from testing.scenarios.fields import at, each, every, flag, mapping, needed, sequence, whole, word
from testing.scenarios.matchers import (
    NOTHING,
    CgroupMatcher,
    Condition,
    EvictedCountMatcher,
    EvictedMatcher,
    ObjectMatcher,
    PodMatcher,
    ReplicasMatcher,
    TrafficMatcher,
)
from testing.scenarios.refs import parse_path, parse_pod_name, parse_ref, pod_names
from testing.scenarios.scenario import Matcher
from testing.scenarios.selectors import SELECTORS, Selector, parse_selector
from testing.scenarios.values import nano, parse_range

_POD_KEYS = ("node", "phase", "exists", "message", "ready")
_CONDITIONS = ("equals", "min", "max", "approx", "contains", "exists")
_SPREADS = frozenset({"nodes", "domains", "perNode", "maxPerNode"})


def parse_expect(value: Any) -> tuple[Matcher, ...]:
    """All matchers of an ``expect`` step, in the order of the file."""
    matchers: list[Matcher] = []
    for name, wanted in mapping(value, _READERS).items():
        matchers += _READERS[name](wanted)
    if not matchers:
        raise ScenarioError("it expects nothing")
    return tuple(matchers)


def _pod(name: str, value: Any) -> Matcher:
    wanted = mapping(value, _POD_KEYS)
    for key in ("exists", "ready"):
        if key in wanted:
            at(key, flag, wanted[key])
    return PodMatcher(parse_pod_name(name), wanted)


def _count(value: Any) -> Matcher:
    entry = mapping(value, SELECTORS | COUNTED | _SPREADS)
    if not entry.keys() & (COUNTED | _SPREADS):
        raise ScenarioError("it counts nothing")
    domains = at("domains", mapping, entry.get("domains"), ("key", "n"))
    return CountMatcher(
        parse_selector(entry),
        {state: at(state, parse_range, entry[state]) for state in entry if state in COUNTED},
        at("nodes", parse_range, entry["nodes"]) if "nodes" in entry else None,
        at("domains.key", word, domains.get("key")) if domains else "",
        at("domains.n", parse_range, domains.get("n")) if domains else None,
        dict(every("perNode", entry.get("perNode"), lambda node, n: (node, parse_range(n)))),
        at("maxPerNode", whole, entry["maxPerNode"]) if "maxPerNode" in entry else None,
    )


def _condition(entry: Manifest) -> Condition:
    given = {name: entry[name] for name in entry if name in _CONDITIONS}
    if not given:
        raise ScenarioError(f"it wants nothing; one of {', '.join(_CONDITIONS)} is needed")
    approx = at("approx", mapping, given.get("approx"), ("value", "tolerance"))
    for name, number in (("min", given.get("min", 0)), ("max", given.get("max", 0)), *approx.items()):
        if nano(number) is None:
            raise ScenarioError(f"{name}: {number!r} is no number or quantity")
    if "exists" in given:
        at("exists", flag, given["exists"])
    middle, width = (needed(approx, "value"), needed(approx, "tolerance")) if approx else (NOTHING, NOTHING)
    return Condition(
        equals=given.get("equals", NOTHING),
        minimum=given.get("min", NOTHING),
        maximum=given.get("max", NOTHING),
        approx=middle,
        tolerance=width,
        contains=given.get("contains", NOTHING),
        exists=given.get("exists", NOTHING),
    )


def _object(value: Any) -> Matcher:
    entry = mapping(value, ("ref", "path", *_CONDITIONS))
    path = entry.get("path")
    steps = at("path", parse_path, path) if path is not None else ()
    return ObjectMatcher(at("ref", parse_ref, entry.get("ref")), steps, path or "", _condition(entry))


def _replicas(ref: str, value: Any) -> Matcher:
    return ReplicasMatcher(parse_ref(ref), parse_range(value))


def _traffic(ref: str, value: Any) -> Matcher:
    return TrafficMatcher(parse_ref(ref), dict(every("", value, lambda revision, share: (revision, whole(share)))))


def _cgroup(value: Any) -> Matcher:
    entry = mapping(value, ("node", "path", "equals"))
    wanted = needed(entry, "equals")
    options = tuple(str(one) for one in (wanted if isinstance(wanted, list) else [wanted]))
    return CgroupMatcher(at("node", word, entry.get("node")), at("path", word, entry.get("path")), options)


def _env(value: Any) -> Matcher:
    entry = mapping(value, ("pod", "select", "take", "name", "equals", "contains", "exists", "json"))
    if ("pod" in entry) == ("select" in entry):
        raise ScenarioError("it names either a pod or a select")
    inner = at("json", mapping, entry.get("json"), ("path", *_CONDITIONS))
    return EnvMatcher(
        _selected(entry),
        at("name", word, entry.get("name")),
        at("json", _condition, inner) if inner else _condition(entry),
        at("take", whole, entry["take"]) if "take" in entry else None,
        at("json.path", parse_path, inner.get("path")) if inner else None,
    )


def _selected(entry: Manifest) -> Selector:
    if "pod" in entry:
        return Selector(pods=(at("pod", parse_pod_name, entry["pod"]),), title=f"pod {entry['pod']}")
    return at("select", parse_selector, mapping(entry["select"], SELECTORS))


def _evicted(name: str, value: Any) -> tuple[Matcher, ...]:
    return (EvictedMatcher(at(name, lambda: pod_names(sequence(value))), name == "evicted"),)


_READERS: dict[str, Callable[[Any], tuple[Matcher, ...]]] = {
    "pods": lambda value: every("pods", value, _pod),
    "count": lambda value: each("count", value, _count),
    "evicted": lambda value: _evicted("evicted", value),
    "notEvicted": lambda value: _evicted("notEvicted", value),
    "evictedCount": lambda value: (EvictedCountMatcher(at("evictedCount", parse_range, value)),),
    "object": lambda value: each("object", value, _object),
    "replicas": lambda value: every("replicas", value, _replicas),
    "traffic": lambda value: every("traffic", value, _traffic),
    "cgroup": lambda value: each("cgroup", value, _cgroup),
    "env": lambda value: each("env", value, _env),
}
