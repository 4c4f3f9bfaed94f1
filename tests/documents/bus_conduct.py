"""What each service does on the bus, read from `deploy/topology/permissions.yaml`, and what its user may do there for that."""

from pathlib import Path

import yaml

from bus import permissions
from bus.permissions import Conduct, Permissions

TOPOLOGY = Path(__file__).resolve().parents[2] / "deploy" / "topology" / "permissions.yaml"


def conducts() -> dict[str, Conduct]:
    """What each service does."""
    return permissions.conducts(yaml.safe_load(TOPOLOGY.read_text())["services"])


def beside_kubelets() -> dict[str, Conduct]:
    """What each service does on a cluster."""
    return conducts() | permissions.conducts(yaml.safe_load(TOPOLOGY.read_text())["beside_kubelets"])


def of_services() -> dict[str, Permissions]:
    """What the user of each service is permitted on a cluster."""
    return {service: permissions.permissions(service, conduct) for service, conduct in beside_kubelets().items()}
