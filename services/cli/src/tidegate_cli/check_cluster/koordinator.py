"""What Koordinator's own configuration says, and what of it is otherwise here."""

from collections.abc import Iterable

import orjson

from descheduler.domain.policy.policy import DeschedulerPolicy
from descheduler.domain.policy.strategy_args import KNOWN
from kube import Manifest
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level

_LOAD = "LoadAwareScheduling"
_ELSEWHERE = {
    "Reservation": "reservations are part of placement and have no arguments",
    "Coscheduling": "gangs are placed at once; `defaultTimeout` and `gangGroup` time-outs of the plugin have no effect",
}


def koordinator(cluster: Cluster) -> Iterable[Finding]:
    """Findings about the configuration of schedulers and of deschedulers with Koordinator's plug-ins."""
    for config_map in cluster.objects("ConfigMap"):
        for _, content in cluster.configuration(config_map):
            subject = f"ConfigMap {config_map.namespace}/{config_map.name}"
            if content.get("kind") == "KubeSchedulerConfiguration":
                yield from _scheduler(subject, content)
            elif content.get("kind") in ("DeschedulerConfiguration", "DeschedulerPolicy"):
                yield from _descheduler(subject, content)


def _descheduler(subject: str, content: Manifest) -> Iterable[Finding]:
    """Koordinator's own configuration, or that of Kubernetes' descheduler."""
    strategies: Manifest = {}
    for profile in content.get("profiles") or ():
        for plugin in profile.get("pluginConfig") or ():
            name, arguments = str(plugin.get("name") or ""), dict(plugin.get("args") or {})
            for part in ("apiVersion", "kind"):
                arguments.pop(part, None)
            if name in _SETTINGS:
                yield from _as_setting(subject, name, arguments)
            elif name in KNOWN:
                strategies[name] = arguments
            else:
                yield Finding(Level.DIFFERS, subject, f"{name}: the descheduler has no such plug-in")
    if strategies:
        yield from _as_setting(subject, ", ".join(strategies), strategies)


_SETTINGS = {"LowNodeLoad": "low_node_load", "MigrationController": "migration", "DefaultEvictor": "migration"}


def _as_setting(subject: str, name: str, arguments: Manifest) -> Iterable[Finding]:
    """What moves pods there does so here with the same arguments, as far as they are known."""
    setting = _SETTINGS.get(name, "strategies")
    given = arguments if setting == "low_node_load" else {setting: arguments}
    try:
        policy = DeschedulerPolicy.of(given)
    except (TypeError, ValueError) as error:
        yield Finding(Level.DIFFERS, subject, f"{name}: {error}")
        return
    for warning in policy.warnings:
        yield Finding(Level.NOTE, subject, f"{name}: {warning}")
    text = f"{name} moves pods there; here nothing moves them unless it is set"
    yield Finding(Level.DIFFERS, subject, text, f"--set descheduler.{setting}='{orjson.dumps(arguments).decode()}'")


def _scheduler(subject: str, content: Manifest) -> Iterable[Finding]:
    for profile in content.get("profiles") or ():
        for plugin in profile.get("pluginConfig") or ():
            name, arguments = str(plugin.get("name") or ""), dict(plugin.get("args") or {})
            for part in ("apiVersion", "kind"):
                arguments.pop(part, None)
            if name == _LOAD and arguments:
                text = f"{_LOAD} has arguments; here the defaults hold unless they are given"
                advice = f"--set gang_scheduler.load_aware='{orjson.dumps(arguments).decode()}'"
                yield Finding(Level.DIFFERS, subject, text, advice)
            elif name in _ELSEWHERE and arguments:
                yield Finding(Level.NOTE, subject, f"{name}: {_ELSEWHERE[name]}")
    for extender in content.get("extenders") or ():
        text = f"extender {extender.get('urlPrefix')}: HTTP extenders are not called"
        yield Finding(Level.DIFFERS, subject, text)
