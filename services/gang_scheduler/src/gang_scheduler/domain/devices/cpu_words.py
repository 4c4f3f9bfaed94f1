"""Where on a node, and on the objects that describe it, something is said about its CPUs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gang_scheduler.domain.devices.cpu_topology import CpuWords
from kube import Manifest, Object
from kube.json_text import read_json

TOPOLOGY_KIND = "NodeResourceTopology.topology.node.k8s.io"
VOLCANO_KIND = "Numatopology.nodeinfo.volcano.sh"

_NODE = "node.koordinator.sh"
CPU_TOPOLOGY = f"{_NODE}/cpu-topology"
KUBELET_CPUS = "kubelet.koordinator.sh/cpu-manager-policy"

_POLICIES = ("SingleNUMANode", "Restricted", "BestEffort")


def cpu_words(node: Object, descriptions: Mapping[str, Object]) -> CpuWords:
    """All that is said; labels of the node come before what its kubelet does."""
    topology, volcano = descriptions.get(TOPOLOGY_KIND), descriptions.get(VOLCANO_KIND)
    told = topology.annotations if topology else {}
    spec = volcano.spec if volcano else {}
    kubelet = _read(told.get(KUBELET_CPUS))
    full = (kubelet.get("options") or {}).get("full-pcpus-only") in (True, "true")
    return CpuWords(
        node.labels.get(f"{_NODE}/numa-topology-policy") or _kubelets_policy(topology),
        told.get(CPU_TOPOLOGY) or node.annotations.get(CPU_TOPOLOGY) or _of_volcano(spec),
        _text(topology.body.get("zones")) if topology else "",
        node.labels.get(f"{_NODE}/cpu-bind-policy") or ("FullPCPUsOnly" if full else ""),
        node.labels.get(f"{_NODE}/numa-allocate-strategy") or "",
        tuple(filter(None, _reserved(node.annotations, told, kubelet, spec))),
        node.annotations.get(f"{_NODE}/resource-amplification-ratio") or "",
    )


def _reserved(node: Mapping[str, str], told: Mapping[str, str], kubelet: Manifest, volcano: Manifest) -> Iterator[str]:
    """Kept by the kubelet, by whoever runs the node, by system services that have them to themselves, or given out by kubelet."""
    yield str(kubelet.get("reservedCPUs") or "")
    yield str(_read(node.get(f"{_NODE}/reservation")).get("reservedCPUs") or "")
    for annotations in (node, told):
        system = _read(annotations.get(f"{_NODE}/system-qos-resource"))
        if system.get("cpusetExclusive", True):
            yield str(system.get("cpuset") or "")
    for one in _listed(told.get(f"{_NODE}/pod-cpu-allocs")):
        if isinstance(one, dict) and one.get("managedByKubelet"):
            yield str(one.get("cpuset") or "")
    reserved = (volcano.get("resReserved") or {}).get("cpu")
    yield str(reserved or "") if "-" in str(reserved) or "," in str(reserved) else ""


def _kubelets_policy(topology: Object | None) -> str:
    """As Koordinator reads it: it holds for all pods. Volcano's description of a node binds only pods with a policy of their own."""
    listed = topology.body.get("topologyPolicies") if topology else None
    found = str(listed[0]) if isinstance(listed, list) and listed else ""
    # Kubelet's scope is part of the name: SingleNUMANodePodLevel, RestrictedContainerLevel.
    return next((policy for policy in _POLICIES if found.startswith(policy)), found)


def _of_volcano(spec: Manifest) -> str:
    """The CPUs of a Numatopology in the form in which Koordinator lists them."""
    detail = spec.get("cpuDetail")
    if not isinstance(detail, dict) or not detail:
        return ""
    listed = [
        {"id": int(cpu), "core": one.get("core", int(cpu)), "node": one.get("numa", 0), "socket": one.get("socket", -1)}
        for cpu, one in detail.items()
        if str(cpu).isdigit() and isinstance(one, dict)
    ]
    return _text({"detail": sorted(listed, key=lambda one: int(one["id"]))})


def _text(part: Any) -> str:
    return json.dumps(part, sort_keys=True) if part else ""


def _read(text: str | None) -> Manifest:
    try:
        read = read_json(text or "{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _listed(text: str | None) -> list[Any]:
    try:
        read = read_json(text or "[]")
    except ValueError:
        return []
    return read if isinstance(read, list) else []
