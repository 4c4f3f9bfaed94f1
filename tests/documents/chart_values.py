"""The form of each chart's values, as a JSON Schema that Helm checks: what is misspelt is refused.

`settings` has the keys of the service's own settings, as the service declares them.
"""

import dataclasses
import importlib
import re
import types
import typing
from typing import Any

from chassis.settings import ServiceSettings
from tidegate.services import SERVICES

Schema = dict[str, Any]

SET_BY_CHART = {field.name for field in dataclasses.fields(ServiceSettings)} - {"trace"}
OWN: dict[str, set[str]] = {
    "admission": {
        *(
            "access",
            "api_host",
            "api_port",
            "api_names",
            "admin_token",
            "kubeconfig",
            "kube_context",
            "tls_folder",
            "inject_ca_from",
            "unreviewed_users",
            "metrics_api_host",
            "metrics_api_port",
            "metrics_apis",
        ),
        *(f"webhook_{name}" for name in ("host", "port", "url", "service", "namespace")),
    },
    "cluster_gateway": {
        "kubeconfig",
        "kube_context",
        "driver",
        "sim_nodes",
        "sim_cpu",
        "sim_memory",
        "sim_gpus",
        "sim_pod_start",
        "reserve_mib",
        "agent_account",
        "inference_gateway",
    },
    "inference_gateway": {"gateway_host", "gateway_port", "inner_host"},
    "node_agent": {
        *("node", "kubelet", "identity", "cgroup_mount", "drain_on_stop", "enforce", "isolate", "allow_root"),
        "inference_gateway",
    },
}
"""Settings that the chart gives itself, or that mean nothing on a cluster."""

TEXT: Schema = {"type": "string"}
_ADDRESS = r"(nats|tls)://[^\s,]+"
ADDRESS: Schema = {"type": "string", "pattern": f"^({_ADDRESS}(,{_ADDRESS})*)?$"}
SWITCH: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer", "minimum": 0}
ANYTHING: Schema = {"type": "object"}
LIST: Schema = {"type": "array", "items": {"type": "object"}}
WORDS: Schema = {"type": "array", "items": TEXT}


def form(**properties: Schema) -> Schema:
    """An object that has these properties and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


IMAGE = form(
    registry=TEXT, repository=TEXT, tag=TEXT, digest=TEXT, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}
)
MONITOR = form(enabled=SWITCH, interval=TEXT, labels=ANYTHING)
SCHEDULING: dict[str, Schema] = {
    "schedulerName": TEXT,
    "priorityClassName": TEXT,
    "nodeSelector": ANYTHING,
    "tolerations": LIST,
    "affinity": ANYTHING,
    "podLabels": ANYTHING,
    "podAnnotations": ANYTHING,
}
NAMES: dict[str, Schema] = {"nameOverride": TEXT, "fullnameOverride": TEXT, "image": IMAGE, "imagePullSecrets": WORDS}
GLOBAL = form(
    imageRegistry=TEXT,
    imagePullSecrets=WORDS,
    nats=form(
        bundled=SWITCH,
        streamReplicas={"enum": [1, 3, 5]},
        tls=form(enabled=SWITCH, secretName=TEXT, certManager=form(enabled=SWITCH, issuerRef=ANYTHING)),
        external=form(url=ADDRESS, credentialsPrefix=TEXT, authoritySecret=TEXT),
    ),
    serviceMonitor=MONITOR,
)
COMMON: dict[str, Schema] = {
    "global": GLOBAL,
    "enabled": SWITCH,
    "service-lib": ANYTHING,
    "replicas": {"type": "integer", "minimum": 1},
    "nats": form(url=ADDRESS, credentialsSecret=TEXT, authoritySecret=TEXT, streamReplicas={"enum": [0, 1, 3, 5]}),
    "serviceAccount": form(annotations=ANYTHING),
    "logLevel": {"enum": ["DEBUG", "INFO", "WARNING", "ERROR"]},
    "listenHost": TEXT,
    "metrics": form(enabled=SWITCH, serviceMonitor=MONITOR),
    "networkPolicy": form(
        enabled=SWITCH,
        metricsFrom=LIST,
        apiServerPorts={"type": "array", "items": {"type": "integer"}},
        extraEgress=LIST,
    ),
    "resources": ANYTHING,
    "terminationGracePeriodSeconds": NUMBER,
    **NAMES,
    **SCHEDULING,
}
SPECIAL: dict[str, dict[str, Schema]] = {
    "admission": {
        "api": form(names=WORDS),
        "webhooks": form(enabled=SWITCH, gatewayAccount=TEXT),
        "metricsApis": form(custom=SWITCH, external=SWITCH),
        "certManager": form(enabled=SWITCH, issuerRef=ANYTHING),
    },
    "inference_gateway": {"routesFrom": WORDS},
    "cluster_gateway": {"writesForUsers": SWITCH, "secrets": SWITCH, "agentAccount": TEXT},
    "node_agent": {"cgroupMount": TEXT, "stateFolder": TEXT, "enforce": SWITCH, "nriFolder": TEXT},
}


def schemas() -> dict[str, Schema]:
    """The schema of each chart by its name."""
    return {
        **{service.replace("_", "-"): _top(_of_service(service)) for service in SERVICES},
        "nats": _top(_of_nats()),
        "tidegate": _top(_of_umbrella()),
    }


def _top(schema: Schema) -> Schema:
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


def _of_service(service: str) -> Schema:
    return form(**COMMON, settings=_settings(service), **SPECIAL.get(service, {}))


def _settings(service: str) -> Schema:
    settings = importlib.import_module(f"{service}.main").Settings
    hidden = SET_BY_CHART | OWN.get(service, set())
    hints = typing.get_type_hints(settings)
    fields = [field.name for field in dataclasses.fields(settings) if field.name not in hidden]
    return form(**{_camel(name): _type_of(hints[name]) for name in fields})


def _type_of(hint: Any) -> Schema:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if bool in options:
        return SWITCH
    if int in options:
        return {"type": "integer"}
    # JSON inside of a text can be written as what it is.
    return {"type": ["string", "object"]}


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _of_nats() -> Schema:
    return form(
        **{"global": GLOBAL, "service-lib": ANYTHING},
        enabled=SWITCH,
        replicas={"enum": [1, 3]},
        storage=form(size={"type": "string", "pattern": "^[1-9][0-9]*(Mi|Gi|Ti)$"}, className=TEXT, ephemeral=SWITCH),
        syncInterval={"type": "string", "pattern": "^(always|[1-9][0-9]*(ms|s|m))$"},
        networkPolicy=form(enabled=SWITCH),
        reloader=form(image=IMAGE, resources=ANYTHING),
        resources=ANYTHING,
        **NAMES,
        **SCHEDULING,
    )


def _of_umbrella() -> Schema:
    """The values of the charts in it are checked by their own schemas."""
    charts = ("nats", *(service.replace("_", "-") for service in SERVICES))
    definitions = form(
        install=SWITCH,
        servingRuntimes=SWITCH,
        image=IMAGE,
        schedulerName=TEXT,
        nodeSelector=ANYTHING,
        tolerations=LIST,
        podAnnotations=ANYTHING,
    )
    return form(
        **{"global": GLOBAL, "service-lib": ANYTHING},
        definitions=definitions,
        dashboard=form(enabled=SWITCH, labels=ANYTHING),
        **dict.fromkeys(charts, ANYTHING),
    )
