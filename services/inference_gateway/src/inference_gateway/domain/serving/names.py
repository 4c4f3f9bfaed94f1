"""The names by which a service is asked: hosts in the forms that KServe and Knative give them, and models by their paths."""

import re

MODELS = "models.tidegate.invalid"
"""Under which the proxy looks up a model that was asked for by its path alone; no real host can have such a name."""
_PATH = re.compile(r"^/v[12]/models/([^/:?]+)")


def hosts(name: str, namespace: str, domain: str) -> tuple[str, ...]:
    """The hosts of ``name``: Knative's form and that of Services in a cluster first, then KServe's, which can be another's, too."""
    plain = f"{name}.{namespace}"
    return (
        f"{plain}.{domain}",
        plain,
        f"{plain}.svc",
        f"{plain}.svc.cluster.local",
        f"{name}-{namespace}.{domain}",
    )


def model_host(model: str) -> str:
    """The host that stands for ``model``."""
    return f"{model}.{MODELS}"


def model_of(path: str) -> str:
    """The model that ``path`` asks for, "" if it asks for none: ``/v2/models/iris/infer`` → ``iris``."""
    found = _PATH.match(path)
    return found.group(1) if found else ""


def without_port(host: str) -> str:
    """``example.com:80`` → ``example.com``, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
