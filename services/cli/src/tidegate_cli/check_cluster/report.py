"""All findings about a cluster, and how they are told."""

from kube import Manifest
from tidegate_cli.check_cluster.cluster import Cluster
from tidegate_cli.check_cluster.finding import Finding, Level
from tidegate_cli.check_cluster.koordinator import koordinator
from tidegate_cli.check_cluster.kueue import kueue
from tidegate_cli.check_cluster.objects import objects
from tidegate_cli.check_cluster.peers import peers
from tidegate_cli.check_cluster.volcano import volcano
from tidegate_cli.check_cluster.workloads import workloads

SHOWN = 3
"""Objects of one finding that are named on the screen; all of them are in the data."""
_TITLES = {
    Level.CONFLICT: "To settle first",
    Level.DIFFERS: "Means something else",
    Level.NOTE: "Good to know",
}


def findings(cluster: Cluster, scheduler_names: frozenset[str]) -> list[Finding]:
    """Everything, what matters most first."""
    found = [
        *peers(cluster, scheduler_names),
        *volcano(cluster),
        *kueue(cluster),
        *koordinator(cluster),
        *objects(cluster),
        *workloads(cluster, scheduler_names),
    ]
    return sorted(found, key=lambda one: one.level)


def lines(found: list[Finding]) -> list[str]:
    """The findings for a person."""
    told: list[str] = []
    for level, title in _TITLES.items():
        chosen = [one for one in found if one.level is level]
        if chosen:
            told += [*([""] if told else []), f"{title} ({len(chosen)})"]
        for one in chosen:
            told.append(f"  {one.subject}: {one.text}")
            if one.advice:
                told.append(f"      {one.advice}")
            if len(one.objects) > 1:
                rest = f" and {len(one.objects) - SHOWN} more" if len(one.objects) > SHOWN else ""
                told.append(f"      {', '.join(one.objects[:SHOWN])}{rest}")
    return told or ["Nothing would differ: the cluster holds no object of a kind that Tidegate acts on."]


def data(found: list[Finding]) -> list[Manifest]:
    """The findings for a program."""
    return [
        {
            "level": one.level.name.lower(),
            "subject": one.subject,
            "text": one.text,
            "advice": one.advice,
            "objects": list(one.objects),
        }
        for one in found
    ]
