"""What Koordinator's own configuration says, and what of it is otherwise here."""

from collections.abc import Iterable

import orjson

from kube import Manifest
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level

_LOAD = "LoadAwareScheduling"
_ELSEWHERE = {
    "Reservation": "reservations are part of placement and have no arguments",
    "Coscheduling": "gangs are placed at once; `defaultTimeout` and `gangGroup` time-outs of the plugin have no effect",
}


def koordinator(cluster: Cluster) -> Iterable[Finding]:
    """Findings about the scheduler's configuration with Koordinator's plug-ins."""
    for config_map in cluster.objects("ConfigMap"):
        for _, content in cluster.configuration(config_map):
            if content.get("kind") == "KubeSchedulerConfiguration":
                yield from _scheduler(f"ConfigMap {config_map.namespace}/{config_map.name}", content)


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
