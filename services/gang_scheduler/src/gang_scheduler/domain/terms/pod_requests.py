"""How much room a pod takes on its node, itself counted as one."""

from collections.abc import Mapping
from typing import Any

from kube.lent_resources import current
from kube.pods import pod_request
from resources import Amounts, QuantityError

PODS = "pods"


def effective_requests(spec: dict[str, Any]) -> Amounts:
    """The requests of a pod spec, with one of ``pods``; resources of which it asks nothing are left out.

    Raises QuantityError naming the resource that is wrong.
    """
    amounts = current(pod_request(spec))
    return {name: amount for name, amount in sorted(amounts.items()) if amount > 0} | {PODS: 1}


def effective_amounts(spec: Mapping[str, Any], part: str) -> Amounts:
    """The ``requests`` or the ``limits`` as they stand, added up like requests, without pods and overhead."""
    lists = {name: [_only(one, part) for one in spec.get(name) or ()] for name in ("containers", "initContainers")}
    return pod_request({**lists, "resources": _only(spec, part)["resources"]})


def _only(holder: Mapping[str, Any], part: str) -> dict[str, Any]:
    amounts = (holder.get("resources") or {}).get(part)
    return {"restartPolicy": holder.get("restartPolicy"), "resources": {"requests": amounts} if amounts else {}}


def tolerant_requests(spec: dict[str, Any]) -> tuple[Amounts, str]:
    """Like effective_requests, but tells what is wrong instead of raising: (requests, "" or the error)."""
    try:
        return effective_requests(spec), ""
    except (QuantityError, AttributeError, TypeError) as error:
        return {PODS: 1}, str(error) or type(error).__name__
