"""Environment variables of a container."""

from kube import Manifest


def variable(name: str, value: object) -> Manifest:
    return {"name": name, "value": str(value)}


def variables(values: dict[str, object]) -> list[Manifest]:
    """Several variables, in the order given."""
    return [variable(name, value) for name, value in values.items()]


def field_variable(name: str, path: str) -> Manifest:
    """A variable that holds a field of the pod itself."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def with_variables(container: Manifest, extra: list[Manifest]) -> Manifest:
    """The container with ``extra`` after its own variables; of one name the extra one stands."""
    if not extra:
        return container
    names = {entry["name"] for entry in extra}
    own = [entry for entry in container.get("env") or [] if entry.get("name") not in names]
    return {**container, "env": own + extra}
