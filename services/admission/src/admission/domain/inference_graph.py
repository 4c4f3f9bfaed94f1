"""InferenceGraphs, as KServe's webhook checks them."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.shapes import AMOUNT, ANYTHING, TEXT, WHOLE, ListOf, MapOf, fields, one_of, within
from admission.domain.world import Review
from kube import Manifest
from kube.json_path import PathError, parse

ROUTERS = ("Sequence", "Splitter", "Ensemble", "Switch")
_STEP = fields(
    name=TEXT,
    nodeName=TEXT,
    serviceName=TEXT,
    serviceUrl=TEXT,
    data=TEXT,
    condition=TEXT,
    dependency=TEXT,
    weight=WHOLE,
)
_AMOUNTS = fields(requests=MapOf(AMOUNT), limits=MapOf(AMOUNT))
GRAPH_SPEC = fields(
    nodes=MapOf(fields(routerType=TEXT, steps=ListOf(_STEP))),
    resources=_AMOUNTS,
    affinity=ANYTHING,
    tolerations=ListOf(ANYTHING),
    nodeSelector=MapOf(TEXT),
    nodeName=TEXT,
    serviceAccountName=TEXT,
    timeout=WHOLE,
    minReplicas=WHOLE,
    maxReplicas=WHOLE,
    scaleTarget=WHOLE,
    scaleMetric=TEXT,
    routerTimeouts=fields(serviceClient=WHOLE),
)


def check_graph(review: Review) -> Iterable[FieldError]:
    """There is a root, steps name one target each that is there, and the weights of a splitter are the whole."""
    nodes: Manifest = review.spec.get("nodes") or {}
    if "root" not in nodes:
        yield FieldError("spec.nodes.root", None, "is required: a graph begins at its root")
    for name, node in nodes.items():
        path = f"spec.nodes.{name}"
        if not node.get("routerType"):
            yield FieldError(f"{path}.routerType", None, f"is required: one of {', '.join(ROUTERS)}")
        yield from one_of(f"{path}.routerType", node.get("routerType"), ROUTERS)
        yield from _check_steps(f"{path}.steps", node, nodes)
    yield from _check_bounds(review.spec)
    circle = _circle(nodes)
    if circle:
        yield FieldError("spec.nodes", None, f"no request may come back to where it was: {' → '.join(circle)}")


def _check_steps(path: str, node: Manifest, nodes: Manifest) -> Iterable[FieldError]:
    steps: list[Manifest] = node.get("steps") or []
    if not steps:
        yield FieldError(path, None, "must have at least one")
    if node.get("routerType") == "Splitter" and sum(int(step.get("weight") or 0) for step in steps) != 100:
        yield FieldError(path, None, "the weight of all steps of a Splitter together must be 100")
    names = [step["name"] for step in steps if step.get("name")]
    if len(set(names)) < len(names):
        yield FieldError(path, None, "the name of a step must be its own")
    for index, step in enumerate(steps):
        targets = [field for field in ("nodeName", "serviceName", "serviceUrl") if step.get(field)]
        if len(targets) != 1:
            yield FieldError(f"{path}[{index}]", None, "must name one of nodeName, serviceName and serviceUrl")
        if step.get("nodeName") and step["nodeName"] not in nodes:
            yield FieldError(f"{path}[{index}].nodeName", step["nodeName"], "is none of the graph's nodes")
        yield from within(f"{path}[{index}].weight", step.get("weight"), 0, 100)
        yield from one_of(f"{path}[{index}].dependency", step.get("dependency"), ("Soft", "Hard"))
        if step.get("condition"):
            yield from _check_condition(f"{path}[{index}].condition", step["condition"])
        yield from one_of(f"{path}[{index}].data", step.get("data"), ("$request", "$response"))


def _check_condition(path: str, text: str) -> Iterable[FieldError]:
    try:
        parse(text)
    except PathError as error:
        yield FieldError(path, text, f"is no path of GJSON that is understood here: {error}")


def _check_bounds(spec: Manifest) -> Iterable[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas")
    yield from within("spec.minReplicas", least, 0)
    yield from within("spec.maxReplicas", most, 0)
    if most and (1 if least is None else least) > most:
        rule = f"must be at least minReplicas, which is {1 if least is None else least}"
        yield FieldError("spec.maxReplicas", most, rule)
    yield from within("spec.timeout", spec.get("timeout"), 0)
    yield from one_of("spec.scaleMetric", spec.get("scaleMetric"), ("cpu", "memory"))
    yield from within("spec.scaleTarget", spec.get("scaleTarget"), 1, 100)


def _circle(nodes: Manifest) -> list[str]:
    """Nodes that lead back to the first of them; empty where none do. A request would be on its way for ever."""
    done: set[str] = set()
    for start in sorted(nodes):
        way, trail = [(start, iter(_targets(nodes, start)))], [start]
        while way:
            name, targets = way[-1]
            target = next((one for one in targets if one not in done), None)
            if target is None:
                done.add(name)
                way.pop()
                trail.pop()
            elif target in trail:
                return [*trail[trail.index(target) :], target]
            else:
                way.append((target, iter(_targets(nodes, target))))
                trail.append(target)
    return []


def _targets(nodes: Manifest, name: str) -> list[str]:
    steps = (nodes.get(name) or {}).get("steps") or ()
    return [str(step["nodeName"]) for step in steps if step.get("nodeName") in nodes]
