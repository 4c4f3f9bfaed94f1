"""The files of the Helm charts that are made from the code: rights at the API server, permissions on the bus, forms of values."""

import json
from collections.abc import Mapping
from typing import Any

import yaml
from api_rights import definition_rules, gateway_rules
from bus_conduct import of_services
from chart_values import schemas

MADE = "# Made by `make docs`; do not edit.\n"


def files() -> dict[str, str]:
    """Each by its path below deploy/helm."""
    permitted = {
        service: {"publish": list(one.publish), "subscribe": list(one.subscribe), "responds": one.responds}
        for service, one in of_services().items()
    }
    return {
        "nats/files/permissions.yaml": _yaml(permitted),
        "cluster-gateway/files/rules.yaml": _yaml(gateway_rules()),
        "tidegate/files/rules.yaml": _yaml(definition_rules()),
        **{f"{chart}/values.schema.json": json.dumps(one, indent=1) + "\n" for chart, one in schemas().items()},
    }


class _Dumper(yaml.SafeDumper):
    """Short lists of words stand in one line."""


def _in_line(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    short = all(isinstance(item, str) for item in items) and len(items) < 12
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Dumper.add_representer(list, _in_line)


def _yaml(content: Mapping[str, Any]) -> str:
    return MADE + yaml.dump(dict(content), Dumper=_Dumper, sort_keys=False, width=140)
