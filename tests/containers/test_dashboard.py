"""The dashboard shows what services measure, and nothing else."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from chassis.measures import Measures
from tidegate.services import SERVICES

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy" / "dashboards" / "tidegate.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
OF_EVERY_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def measured(service: str) -> set[str]:
    """The names of all samples that ``service`` serves."""
    families = Measures(service).registry.collect()
    suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
    common = {family.name + suffix for family in families for suffix in suffixes[family.type]}
    return common | {f"tidegate_{service}_{name}" for name in watched(service)}


def watched(service: str) -> Iterator[str]:
    """The figures of its own that the service names in its wiring."""
    tree = ast.parse((ROOT / "services" / service / "src" / service / "main.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("measures.watch"):
            yield ast.literal_eval(node.args[0])


def test_every_metric_on_the_dashboard_is_measured() -> None:
    known = OF_EVERY_PROCESS.union(*map(measured, SERVICES))
    shown = {
        name
        for panel in PANELS
        for target in panel["targets"]
        for name in re.findall(r"\b(?:tidegate|process)_\w+", target["expr"])
    }
    assert shown - known == set()


def test_panels_lie_beside_one_another_and_say_what_they_show() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert all(panel["description"] for panel in PANELS)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
