"""An inventory that is written down, where the machine cannot show it or should seem another.

cpu: 64                     # all of it optional; what is left out is the machine's own
memory: 512Gi
pods: 200
numa: [{cpus: "0-31", memory: 256Gi, gpus: [0, 1]}, {cpus: "32-63", memory: 256Gi}]
gpus: [{index: 0, memory: 80Gi, model: A100, numa: 0, uuid: GPU-0, mig: [{profile: 1g.10gb, uuid: MIG-0}]}]
nvlink: [[0, 1]]
resources: {example.com/fpga: 2}
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kube.cpu_lists import parse_cpus
from node_agent.inventory.parts import Gpu, MigInstance, NumaNode
from resources import Amounts, QuantityError, parse_amounts, parse_milli, parse_quantity

_KEYS = {"cpu", "memory", "pods", "numa", "gpus", "nvlink", "resources"}


class InventoryError(ValueError):
    """A declared inventory that cannot be read, with the file and the key."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a file declares; None or 0 is not declared. ``gpus`` may be declared to be none."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    pods: int = 0
    numa: tuple[NumaNode, ...] = ()
    gpus: tuple[Gpu, ...] | None = None
    resources: Amounts = field(default_factory=dict)


def read(file: Path) -> Declared:
    """The inventory in ``file``, which is YAML or JSON; raises InventoryError."""
    try:
        data = yaml.safe_load(file.read_text()) or {}
        unknown = sorted(data.keys() - _KEYS)
        if unknown:
            raise InventoryError(f"{file}: unknown keys {', '.join(unknown)}; there are {', '.join(sorted(_KEYS))}")
        return _declared(data)
    except InventoryError:
        raise
    except (OSError, yaml.YAMLError, QuantityError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InventoryError(f"{file}: {error}") from None


def _declared(data: dict[str, Any]) -> Declared:
    numa = tuple(
        NumaNode(int(one.get("index", index)), _cpus(one), parse_quantity(one.get("memory", 0)), tuple(one.get("gpus") or ()))
        for index, one in enumerate(data.get("numa") or ())
    )  # fmt: skip
    home = {gpu: one.index for one in numa for gpu in one.gpus}
    gpus = None
    if data.get("gpus") is not None:
        pairs = [(int(left), int(right)) for left, right in data.get("nvlink") or ()]
        gpus = tuple(_gpu(one, index, home, pairs) for index, one in enumerate(data["gpus"]))
    return Declared(
        cpu_milli=parse_milli(data.get("cpu", 0)),
        memory_bytes=parse_quantity(data.get("memory", 0)),
        pods=int(data.get("pods", 0)),
        numa=numa,
        gpus=gpus,
        resources=parse_amounts(data.get("resources")),
    )


def _cpus(node: dict[str, Any]) -> str:
    parse_cpus(str(node["cpus"]))
    return str(node["cpus"])


def _gpu(one: dict[str, Any], position: int, home: dict[int, int], pairs: list[tuple[int, int]]) -> Gpu:
    index = int(one.get("index", position))
    peers = {right if left == index else left for left, right in pairs if index in (left, right)}
    numa = one.get("numa", home.get(index))
    return Gpu(
        index=index,
        uuid=str(one.get("uuid") or f"GPU-{index}"),
        model=str(one.get("model") or "GPU"),
        memory_bytes=parse_quantity(one.get("memory", 0)),
        numa=None if numa is None else int(numa),
        nvlink=tuple(sorted(peers)),
        mig=_instances(one.get("mig"), index),
    )


def _instances(listed: list[dict[str, Any]] | None, gpu: int) -> tuple[MigInstance, ...] | None:
    if listed is None:
        return None
    numbered = enumerate(listed)
    return tuple(MigInstance(str(one["profile"]), str(one.get("uuid") or f"MIG-{gpu}-{at}")) for at, one in numbered)
