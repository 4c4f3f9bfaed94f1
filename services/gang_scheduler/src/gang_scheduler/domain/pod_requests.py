"""How much room a pod takes on its node, itself counted as one."""

from typing import Any

from kube.pods import pod_request
from resources import Amounts, QuantityError

PODS = "pods"


def effective_requests(spec: dict[str, Any]) -> Amounts:
    """The requests of a pod spec, with one of ``pods``; resources of which it asks nothing are left out.

    Raises QuantityError naming the resource that is wrong.
    """
    return {name: amount for name, amount in sorted(pod_request(spec).items()) if amount > 0} | {PODS: 1}


def tolerant_requests(spec: dict[str, Any]) -> tuple[Amounts, str]:
    """Like effective_requests, but tells what is wrong instead of raising: (requests, "" or the error)."""
    try:
        return effective_requests(spec), ""
    except (QuantityError, AttributeError, TypeError) as error:
        return {PODS: 1}, str(error) or type(error).__name__
