"""Reading scenario files: YAML in, frozen scenarios out, with errors that name file, step and key."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from kube import Manifest
from testing.scenarios.errors import ScenarioError
from testing.scenarios.expectations import parse_expect
from testing.scenarios.fields import at, duration, each, every, flag, mapping, needed, sequence, whole, word
from testing.scenarios.nodes import expand_nodes, parse_change
from testing.scenarios.refs import parse_pod_name, parse_ref
from testing.scenarios.samples import parse_metric, parse_usage
from testing.scenarios.scenario import (
    Advance,
    Apply,
    ChangeNodes,
    Delete,
    Expect,
    Nodes,
    PodReports,
    Report,
    Restart,
    SampleMetrics,
    SampleUsage,
    Scenario,
    Step,
)
from testing.scenarios.selectors import SELECTORS, Selector, parse_selector
from testing.scenarios.shorthands import expand
from testing.scenarios.target import PodReport

AREAS = (
    *("gang", "queue", "preemption", "topology", "device", "lifecycle", "admission", "serving", "autoscaling"),
    *("colocation", "node", "descheduling", "pipeline", "tuning"),
)
ROLES = ("scheduler", "controllers", "autoscaler", "agents", "all")
PHASES = ("Pending", "Running", "Succeeded", "Failed")

_TOP_KEYS = ("scenario", "area", "title", "origin", "why", "policy", "simulate", "steps")
_POLICY_KEYS = (
    *("placement", "preemption", "reclaim", "queueing", "ordering", "overcommit", "loadAware", "colocation"),
    *(
        "descheduler",
        "autoscaler",
        "backfill",
        "gangEviction",
        "nodeAgent",
        "topology",
        "tuning",
        "kueue",
        "revocableZones",
    ),
)
_REPORT_KEYS = ("phase", "exitCode", "reason", "restarts")


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a time is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def scenario_files(paths: Iterable[Path]) -> list[Path]:
    """The scenario files among ``paths`` and in the folders among them, sorted; raises ScenarioError for a missing one."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ScenarioError(f"{path}: there is no such file or folder")
        found += sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def load_scenario(path: Path) -> Scenario:
    """The scenario in the file at ``path``; raises ScenarioError naming file, step and key."""
    return at(str(path), _read, path)


def _read(path: Path) -> Scenario:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise ScenarioError(f"it cannot be read: {error}") from None
    scenario = parse_scenario(document)
    if scenario.name != path.stem:
        raise ScenarioError(f"scenario: {scenario.name!r} is not the name of the file")
    return scenario


def parse_scenario(document: Any) -> Scenario:
    """The scenario that a YAML document describes."""
    top = mapping(document, _TOP_KEYS)
    name, area, title = (at(key, word, top.get(key)) for key in ("scenario", "area", "title"))
    if area not in AREAS:
        raise ScenarioError(f"area: {area!r} is none of {', '.join(AREAS)}")
    policy = at("policy", mapping, top.get("policy"), _POLICY_KEYS)
    simulate = at("simulate", _simulate, top.get("simulate"))
    queueing = str(policy.get("queueing", ""))
    entries = at("steps", sequence, needed(top, "steps"))
    steps = tuple(at(f"step {number}", _step, entry, queueing) for number, entry in enumerate(entries, 1))
    if not any(isinstance(step, Expect) or getattr(step, "rejects", None) is not None for step in steps):
        raise ScenarioError("it expects nothing")
    return Scenario(area, name, title, steps, policy, simulate, str(top.get("origin") or ""), str(top.get("why") or ""))


def _simulate(value: Any) -> Manifest:
    entry = mapping(value, ("podStart", "termination"))
    for name, given in entry.items():
        if (name, given) != ("podStart", "manual"):
            at(name, duration, given)
    return entry


def _step(value: Any, queueing: str) -> Step:
    step = mapping(value)
    names = [name for name in step if name != "rejects"]
    if len(names) != 1 or names[0] not in _READERS:
        raise ScenarioError(
            f"keys {', '.join(map(str, step)) or 'none'}; exactly one of {', '.join(_READERS)} is needed"
        )
    name = names[0]
    rejects = at("rejects", word, step["rejects"]) if "rejects" in step else None
    if name == "apply":
        return _apply(step[name], rejects, queueing)
    if name == "delete":
        return Delete(each("delete", step[name], parse_ref), rejects)
    if rejects is not None:
        raise ScenarioError("rejects goes with apply or delete only")
    return _READERS[name](step[name])


def _apply(value: Any, rejects: str | None, queueing: str) -> Apply:
    groups = each("apply", value, lambda entry: expand(entry, queueing))
    return Apply(tuple(given for group in groups for given in group), rejects)


def _nodes(value: Any) -> Nodes:
    return Nodes(tuple(node for group in each("nodes", value, expand_nodes) for node in group))


def _pod_phase(value: Any) -> PodReports:
    if isinstance(value, list):
        return PodReports(each("podPhase", value, _selected_phase))
    return PodReports(every("podPhase", value, lambda pod, said: Report(_one(pod), _report(said))))


def _selected_phase(value: Any) -> Report:
    entry = mapping(value, ("select", "take", *_REPORT_KEYS))
    selector = at("select", parse_selector, mapping(needed(entry, "select"), SELECTORS))
    take = at("take", whole, entry["take"]) if "take" in entry else None
    return Report(selector, _report({name: entry[name] for name in entry if name in _REPORT_KEYS}), take)


def _report(said: Any) -> PodReport:
    entry = {"phase": said} if isinstance(said, str) else mapping(said, _REPORT_KEYS)
    if entry.get("phase") not in PHASES:
        raise ScenarioError(f"phase: {entry.get('phase')!r} is none of {', '.join(PHASES)}")
    counts = {name: at(name, whole, entry[name]) for name in ("exitCode", "restarts") if name in entry}
    reason = at("reason", word, entry["reason"]) if "reason" in entry else None
    return PodReport(entry["phase"], counts.get("exitCode"), reason, counts.get("restarts"))


def _pod_ready(pod: str, value: Any) -> Report:
    return Report(_one(pod), PodReport(ready=flag(value)))


def _one(pod: str) -> Selector:
    return Selector(pods=(parse_pod_name(pod),), title=str(pod))


def _role(value: Any) -> str:
    if value not in ROLES:
        raise ScenarioError(f"{value!r} is none of {', '.join(ROLES)}")
    return str(value)


def _metrics(value: Any) -> SampleMetrics:
    return SampleMetrics(tuple(sample for group in each("metrics", value, parse_metric) for sample in group))


_READERS: dict[str, Callable[[Any], Step]] = {
    "nodes": _nodes,
    "apply": lambda value: _apply(value, None, ""),
    "delete": lambda value: Delete(each("delete", value, parse_ref)),
    "advance": lambda value: Advance(at("advance", duration, value)),
    "podPhase": _pod_phase,
    "podReady": lambda value: PodReports(every("podReady", value, _pod_ready)),
    "node": lambda value: ChangeNodes(every("node", value, parse_change)),
    "usage": lambda value: SampleUsage(dict(every("usage", value, lambda node, sample: (node, parse_usage(sample))))),
    "metrics": _metrics,
    "restart": lambda value: Restart(each("restart", value, _role)),
    "expect": lambda value: Expect(parse_expect(value)),
}
