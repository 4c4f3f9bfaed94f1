"""Batch and mid resources: cpu and memory under the names of what is only lent."""

from admission.domain.quantities import sound_amounts
from kube import Manifest
from resources import format_amounts

BANDS = ("batch", "mid")


def translate(spec: Manifest, band: str) -> None:
    """Rename cpu and memory everywhere in the pod spec if its ``band`` is one that lives on lent resources."""
    if band not in BANDS:
        return
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        resources = container.get("resources") or {}
        for part in ("requests", "limits"):
            if resources.get(part):
                resources[part] = renamed(resources[part], band)
        limits = resources.get("limits")
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    if spec.get("overhead"):
        spec["overhead"] = renamed(spec["overhead"], band)


def uses_lent_resources(spec: Manifest) -> bool:
    """Whether any container asks for batch or mid resources, or has its overhead there."""
    prefixes = tuple(f"kubernetes.io/{band}-" for band in BANDS)
    containers = (spec.get("initContainers") or []) + (spec.get("containers") or [])
    listed = [*((one.get("resources") or {}).get("requests") for one in containers), spec.get("overhead")]
    return any(name.startswith(prefixes) for amounts in listed for name in amounts or {})


def renamed(given: Manifest, band: str) -> Manifest:
    """``{cpu: 1, memory: 4Gi}`` as ``{kubernetes.io/batch-cpu: 1000, kubernetes.io/batch-memory: 4Gi}``."""
    result: Manifest = {}
    for name, value in given.items():
        amounts = sound_amounts({name: value})
        if name == "cpu" and amounts:
            # The cpu of others counts in thousandths, as a whole number.
            result[f"kubernetes.io/{band}-cpu"] = str(amounts["cpu"])
        elif name == "memory" and amounts:
            result[f"kubernetes.io/{band}-memory"] = format_amounts(amounts)["memory"]
        else:
            result[name] = value
    return result
