"""What the configuration of Volcano's scheduler says, and what of it is otherwise here."""

from collections.abc import Iterable, Mapping

from kube import Manifest
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level

_WITHOUT_ACTION = {
    "preempt": (
        "Volcano does not preempt inside a queue here; Tidegate does, for jobs of higher priority",
        "to keep it so: --set gang_scheduler.preemption=false, or a PriorityClass with preemptionPolicy: Never",
    ),
    "reclaim": (
        "Volcano does not take lent room back here; Tidegate does, for queues below what they deserve",
        "to keep it so: --set gang_scheduler.reclaim=false, or reclaimable: false on a Queue",
    ),
}
"""Actions that Volcano's chart leaves out, and that are on here unless they are switched off."""

_PLUGINS = {
    "overcommit": "there is no gate on enqueueing unless there is one: --set queue_manager.overcommit=FACTOR",
    "usage": "load is judged by Koordinator's rule: cpu above 65 %, memory above 95 % takes no more pods",
    "sla": "waiting times do not admit anything; after 5 minutes at its queue's head room is reserved for a job",
    "rescheduling": "pods are not moved to balance nodes",
    "extender": "HTTP extenders are not called",
    "pdb": "victims are chosen so that the fewest disruption budgets are broken, and are evicted through the Eviction API",
    "drf": "dominant shares order jobs with --set queue_manager.queueing=drf only",
    "capacity": "queues that give `deserved` have it; the others share the rest by weight and are not best effort",
    "resource-strategy-fit": "nodes are filled one after the other (binpack) or evenly (spread), with weights of its own",
}
"""What a plugin does that is otherwise here. Plugins that are not named do the same, or are always on."""

_SAME = frozenset(
    {
        "priority",
        "gang",
        "conformance",
        "predicates",
        "proportion",
        "nodeorder",
        "binpack",
        "cdp",
        "tdm",
        "numa-aware",
        "task-topology",
        "network-topology-aware",
        "deviceshare",
        "nodegroup",
        "resourcequota",
    }
)


def volcano(cluster: Cluster) -> Iterable[Finding]:
    """Findings about ``volcano-scheduler.conf`` of every ConfigMap that has one."""
    for config_map in cluster.objects("ConfigMap"):
        for name, content in cluster.configuration(config_map):
            if name.endswith("scheduler.conf") and "actions" in content:
                yield from _configuration(f"ConfigMap {config_map.namespace}/{config_map.name}", content)


def _configuration(subject: str, content: Manifest) -> Iterable[Finding]:
    actions = {word.strip() for word in str(content["actions"]).split(",")}
    for action, (text, advice) in _WITHOUT_ACTION.items():
        if not actions & {action, f"gang{action}"}:
            yield Finding(Level.DIFFERS, subject, text, advice)
    if "shuffle" in actions:
        yield Finding(Level.DIFFERS, subject, "action shuffle: pods are not moved to balance nodes")
    for plugin in _plugins(content):
        name = str(plugin.get("name") or "")
        if name in _PLUGINS:
            yield Finding(Level.DIFFERS, subject, f"plugin {name}: {_PLUGINS[name]}")
        elif name not in _SAME:
            yield Finding(Level.DIFFERS, subject, f"plugin {name}: nothing here answers to it")
        if plugin.get("enableHierarchy") and name == "drf":
            text = (
                "plugin drf with enableHierarchy: the hierarchy annotations of Queues make a tree here too, "
                "which is compared level by level with queue_manager's queueing=drf only"
            )
            yield Finding(Level.DIFFERS, subject, text)


def _plugins(content: Manifest) -> Iterable[Mapping[str, object]]:
    for tier in content.get("tiers") or ():
        for plugin in (tier or {}).get("plugins") or ():
            if isinstance(plugin, dict):
                yield plugin
