"""Wishes in annotations: where pods and gangs want to be, and how many of them at once.

A minimum that is no number, and a placement that there is not, are refused. The other wishes are peers', who take such an object
in and go by no wish at all; so it is let in, and whoever gives it is told.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from admission.domain.errors import FieldError
from admission.domain.shapes import entry, one_of
from admission.domain.world import Review
from kube.json_text import read_json

Rule = Callable[[str], str]
"""Why a text is no such wish; "" where it is one."""

PLACEMENT = "tidegate.dev/placement"
GANG, SIGS, KOORDINATOR = (
    "gang.scheduling.koordinator.sh",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.koordinator.sh",
)
MINIMA = (f"{GANG}/min-available", f"{SIGS}/min-available")
NUMA_POLICIES = ("", "None", "BestEffort", "Restricted", "SingleNUMANode")
BIND_POLICIES = ("", "Default", "FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst")
EXCLUSIVE_POLICIES = ("", "None", "PCPULevel", "NUMANodeLevel")


def _one_of(*words: str) -> Rule:
    return lambda text: "" if text in words else f"must be one of {', '.join(words)}"


def _number(text: str) -> str:
    return "" if text.isascii() and text.isdigit() else "must be a whole number, 0 or more"


def _read(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


def _texts(text: str) -> str:
    read = _read(text)
    named = isinstance(read, list) and all(isinstance(one, str) for one in read)
    return "" if named else 'must be a JSON list of gangs such as ["default/a", "default/b"]'


def _mapping(**known: Sequence[str]) -> Rule:
    """A JSON mapping in which the ``known`` fields have one of their words."""

    def rule(text: str) -> str:
        read = _read(text)
        if not isinstance(read, dict):
            return "must be a JSON mapping"
        wrong = [name for name, words in known.items() if read.get(name, "") not in words]
        return f"{wrong[0]} must be one of {', '.join(filter(None, known[wrong[0]]))}" if wrong else ""

    return rule


_VOLCANO_NUMA = _one_of("none", "best-effort", "restricted", "single-numa-node", "singlenumanode")
PEERS: dict[str, Rule] = {
    f"{GANG}/groups": _texts,
    f"{GANG}/mode": _one_of("Strict", "NonStrict"),
    f"{GANG}/match-policy": _one_of("once-satisfied", "only-waiting", "waiting-and-running"),
    f"{GANG}/total-number": _number,
    f"{GANG}/network-topology-spec": _mapping(),
    "volcano.sh/network-topology-mode": _one_of("hard", "soft"),
    "volcano.sh/network-topology-highest-tier": _number,
    "volcano.sh/numa-topology-policy": lambda text: _VOLCANO_NUMA(text.lower()),
    "volcano.sh/preemptable": _one_of("true", "false"),
    f"{KOORDINATOR}/numa-topology-spec": _mapping(numaTopologyPolicy=NUMA_POLICIES),
    f"{KOORDINATOR}/resource-spec": _mapping(
        requiredCPUBindPolicy=BIND_POLICIES,
        preferredCPUBindPolicy=BIND_POLICIES,
        preferredCPUExclusivePolicy=EXCLUSIVE_POLICIES,
    ),
    f"{KOORDINATOR}/gpu-partition-spec": _mapping(allocatePolicy=("", "Restricted", "BestEffort")),
    f"{KOORDINATOR}/device-allocate-hint": _mapping(),
    f"{KOORDINATOR}/device-joint-allocate": _mapping(requiredScope=("", "SamePCIe")),
}


def check_wishes(review: Review) -> Iterable[FieldError]:
    """A gang's minimum is a number, and a placement one that there is, on the object and on the pods of its template."""
    for path, annotations in _stated(review):
        yield from check_minimum(path, annotations)
        if PLACEMENT in annotations:
            yield from one_of(entry(path, PLACEMENT), annotations[PLACEMENT], ("binpack", "spread"))


def check_minimum(path: str, annotations: Mapping[str, str]) -> Iterable[FieldError]:
    """The minimum of a gang, where its pods tell it."""
    for name in MINIMA:
        if name in annotations and (rule := _number(annotations[name])):
            yield FieldError(entry(path, name), annotations[name], f"{rule}; so many pods of the gang start together")


def warn_wishes(review: Review) -> Iterable[str]:
    """Which wishes are none, and so have no effect."""
    for path, annotations in _stated(review):
        for name, rule in PEERS.items():
            if name in annotations and (wrong := rule(annotations[name])):
                yield f"{FieldError(entry(path, name), annotations[name], wrong)}; it has no effect"


def _stated(review: Review) -> Iterable[tuple[str, Mapping[str, str]]]:
    """The annotations of the object, and of the pods of its template."""
    spec = review.manifest.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    below = template.get("metadata") if isinstance(template, dict) else None
    for path, metadata in (("metadata.annotations", review.metadata), ("spec.template.metadata.annotations", below)):
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if isinstance(annotations, dict):
            yield path, annotations
