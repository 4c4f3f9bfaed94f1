"""What an operator says of where samples come from, beside what the objects say themselves."""

from dataclasses import dataclass

from inference_autoscaler.domain.sampling.rules import Rule, RuleError, read_rules
from kube import Manifest

_PODS = {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}}
_BUILT_IN = read_rules(
    [
        {
            "seriesQuery": "DCGM_FI_DEV_GPU_UTIL",
            "resources": _PODS,
            "name": {"as": "duty_cycle_current"},
            "metricsQuery": "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
        },
        {
            "seriesQuery": '{__name__=~"DCGM_FI_.*"}',
            "resources": _PODS,
            "metricsQuery": "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
        },
    ]
)
"""What NVIDIA's exporter tells of the GPUs of pods, in percent, Watt or MiB of each card: their mean. Behind an operator's rules."""

_KEYS = frozenset(("prometheus", "rules", "externalRules", "scrape"))


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """``prometheus`` is the address of the Prometheus that ``rules`` (of pods and objects) and ``external`` are for.

    With ``scrapes`` the pods of a target are asked themselves for what no rule tells of them. Without ``triggers`` nothing is
    asked for ScaledObjects: somebody else acts on them.
    """

    prometheus: str = ""
    rules: tuple[Rule, ...] = ()
    external: tuple[Rule, ...] = ()
    scrapes: bool = True
    triggers: bool = True

    @classmethod
    def of(cls, given: Manifest, *, triggers: bool = True) -> "SamplingPlan":
        """``given`` has the keys prometheus, rules, externalRules (both in the adapter's words) and scrape. Raises RuleError."""
        if unknown := given.keys() - _KEYS:
            raise RuleError(f"{', '.join(sorted(unknown))}: no such key; there are {', '.join(sorted(_KEYS))}")
        rules, external = (read_rules(given.get(name) or []) for name in ("rules", "externalRules"))
        address = str(given.get("prometheus") or "").rstrip("/")
        if (rules or external) and not address:
            raise RuleError("prometheus: is not given; rules are questions to the Prometheus at this address")
        return cls(
            address, (*rules, *(_BUILT_IN if address else ())), external, given.get("scrape") is not False, triggers
        )
