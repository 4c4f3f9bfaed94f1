"""Whether a workload may run on the nodes of a flavor at all."""

from collections.abc import Mapping

from kube import Manifest
from kube.node_choice import tolerates
from kube.selectors import matches
from queue_manager.domain.quotas.cluster_queue import Flavor, ResourceGroup
from queue_manager.domain.workloads.podset import PodSet
from queue_manager.domain.workloads.workload import Constraints


def unsuitable(
    name: str,
    group: ResourceGroup,
    flavors: Mapping[str, Flavor],
    constraints: Constraints,
    podsets: tuple[PodSet, ...] = (),
) -> str:
    """Why a workload cannot run on the nodes of the flavor; "" when it can."""
    flavor = flavors.get(name)
    if flavor is None:
        return f"flavor {name} does not exist"
    if flavor.topology and flavor.levels is None:
        return f"flavor {name} names the topology {flavor.topology}, which does not exist"
    if podsets and not flavor.levels:
        return f"flavor {name} has no topology, which the pods ask for"
    missing = [level for podset in podsets for level in podset.ask.levels if level not in (flavor.levels or ())]
    if missing:
        return f"the topology {flavor.topology} of flavor {name} has no level {missing[0]}, which the pods ask for"
    if not (flavor.taints or constraints.text):
        return ""
    selector, terms, tolerations = constraints.parts
    for taint in flavor.taints:
        if taint.get("effect") != "PreferNoSchedule" and not any(
            tolerates(item, taint) for item in (*tolerations, *flavor.tolerations)
        ):
            return f"flavor {name} has the taint {taint.get('key')}={taint.get('value', '')} that is not tolerated"
    allowed = {label for each in group.flavors if each in flavors for label in flavors[each].labels}
    wanted = {label: value for label, value in selector.items() if label in allowed}
    if any(flavor.labels.get(label) != value for label, value in wanted.items()) or not _meets(terms, flavor, allowed):
        return f"flavor {name} does not match the node selector or affinity"
    return ""


def _meets(terms: list[Manifest] | None, flavor: Flavor, allowed: set[str]) -> bool:
    """Whether one of the terms holds, of which only what is about labels that flavors have is looked at."""
    if terms is None:
        return True
    for term in terms:
        listed = [item for item in term.get("matchExpressions") or () if item.get("key") in allowed]
        known = [item for item in listed if item.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")]
        if matches({"matchExpressions": known}, flavor.labels):
            return True
    return False
