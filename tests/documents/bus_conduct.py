"""What each service does on the bus, read from `deploy/topology/permissions.yaml`, and what its user may do there for that."""

import dataclasses
from pathlib import Path

import yaml

from bus.permissions import Conduct, Permissions, permissions

TOPOLOGY = Path(__file__).resolve().parents[2] / "deploy" / "topology" / "permissions.yaml"
_LISTS = {field.name for field in dataclasses.fields(Conduct) if field.default == ()}


def conducts() -> dict[str, Conduct]:
    """What each service does."""
    written = yaml.safe_load(TOPOLOGY.read_text())["services"]
    return {
        service: Conduct(**{word: tuple(value) if word in _LISTS else value for word, value in said.items()})
        for service, said in written.items()
    }


def of_services() -> dict[str, Permissions]:
    """What the user of each service is permitted."""
    return {service: permissions(service, conduct) for service, conduct in conducts().items()}
