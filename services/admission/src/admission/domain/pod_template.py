"""What a pod is made from: the spec that pods and the templates of all kinds of jobs share."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission.domain import names
from admission.domain.card_requests import check_card_requests
from admission.domain.containers import CONTAINER, check_containers, default_container
from admission.domain.errors import FieldError
from admission.domain.object_meta import TEMPLATE_METADATA
from admission.domain.pod_placement import AFFINITY, SPREAD, TOLERATION, check_placement
from admission.domain.pod_resources import check_pod_claims, check_pod_resources
from admission.domain.quantities import check_amounts
from admission.domain.shapes import AMOUNT, AMOUNTS, TEXT, TEXT_MAP, TRUTH, WHOLE, ListOf, fields, one_of, within
from admission.domain.topology import check_podset
from admission.domain.volumes import CLAIM_TEMPLATE, check_claim_spec
from kube import Manifest

_ITEMS = ListOf(fields(key=TEXT, path=TEXT, mode=WHOLE))
_FILES = ListOf(fields(path=TEXT, mode=WHOLE, fieldRef=fields(fieldPath=TEXT)))
_CONFIG_MAP, _DOWNWARD = fields(name=TEXT, items=_ITEMS, optional=TRUTH, defaultMode=WHOLE), fields(items=_FILES)
VOLUME = fields(
    name=TEXT,
    emptyDir=fields(medium=TEXT, sizeLimit=AMOUNT),
    configMap=_CONFIG_MAP,
    secret=fields(secretName=TEXT, items=_ITEMS, optional=TRUTH, defaultMode=WHOLE),
    downwardAPI=_DOWNWARD,
    projected=fields(
        defaultMode=WHOLE, sources=ListOf(fields(configMap=_CONFIG_MAP, secret=_CONFIG_MAP, downwardAPI=_DOWNWARD))
    ),
    hostPath=fields(path=TEXT, type=TEXT),
    persistentVolumeClaim=fields(claimName=TEXT, readOnly=TRUTH),
    ephemeral=fields(volumeClaimTemplate=CLAIM_TEMPLATE),
)
POD_SPEC = fields(
    containers=ListOf(CONTAINER),
    initContainers=ListOf(CONTAINER),
    volumes=ListOf(VOLUME),
    restartPolicy=TEXT,
    nodeSelector=TEXT_MAP,
    nodeName=TEXT,
    schedulerName=TEXT,
    priorityClassName=TEXT,
    runtimeClassName=TEXT,
    priority=WHOLE,
    preemptionPolicy=TEXT,
    hostNetwork=TRUTH,
    hostname=TEXT,
    subdomain=TEXT,
    dnsPolicy=TEXT,
    serviceAccountName=TEXT,
    overhead=AMOUNTS,
    activeDeadlineSeconds=WHOLE,
    terminationGracePeriodSeconds=WHOLE,
    schedulingGroup=fields(podGroupName=TEXT),
    schedulingGates=ListOf(fields(name=TEXT)),
    tolerations=ListOf(TOLERATION),
    affinity=AFFINITY,
    topologySpreadConstraints=ListOf(SPREAD),
    resources=fields(requests=AMOUNTS, limits=AMOUNTS),
    resourceClaims=ListOf(fields(name=TEXT, resourceClaimName=TEXT, resourceClaimTemplateName=TEXT)),
)
POD_TEMPLATE = fields(metadata=TEMPLATE_METADATA, spec=POD_SPEC)

RESTART_POLICIES = ("Always", "OnFailure", "Never")
FINISHING = ("OnFailure", "Never")


def default_pod_spec(spec: Manifest, restart_policy: str | None = None) -> None:
    """Fill in what Kubernetes fills in; ``restart_policy`` where none is given, nothing if it is None."""
    if restart_policy:
        spec.setdefault("restartPolicy", restart_policy)
    host_network = bool(spec.get("hostNetwork"))
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        default_container(container, host_network=host_network)
    for wanted in spec.get("tolerations") or []:
        wanted.setdefault("operator", "Equal")


def default_template(template: Manifest, restart_policy: str | None = None) -> None:
    """The defaults of the pod spec of ``template``; a missing spec is left to the checks."""
    spec = template.get("spec")
    if spec:
        default_pod_spec(spec, restart_policy)


def check_pod_spec(
    path: str,
    spec: Mapping[str, Any],
    restart_policies: Iterable[str] = RESTART_POLICIES,
    more_volumes: Iterable[str] = (),
) -> Iterable[FieldError]:
    """All that must hold for the spec of a pod; ``more_volumes`` are those that its owner adds."""
    volumes = spec.get("volumes") or []
    yield from check_containers(path, spec, [*(volume.get("name") or "" for volume in volumes), *more_volumes])
    yield from _check_volumes(f"{path}.volumes", volumes)
    yield from one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), restart_policies)
    yield from within(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 1)
    yield from within(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"), 0)
    yield from check_amounts(f"{path}.overhead", spec.get("overhead"))
    yield from check_pod_resources(path, spec)
    yield from check_pod_claims(path, spec)
    yield from check_card_requests(path, spec)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from names.dns_label(f"{path}.{name}", spec[name])
    gates = [gate.get("name") or "" for gate in spec.get("schedulingGates") or []]
    for index, gate in enumerate(gates):
        yield from names.qualified_name(f"{path}.schedulingGates[{index}].name", gate)
    yield from names.distinct(f"{path}.schedulingGates[{{}}].name", gates, "scheduling gates")
    yield from check_placement(path, spec)


def check_template(
    path: str,
    template: Mapping[str, Any] | None,
    restart_policies: Iterable[str] = RESTART_POLICIES,
    more_volumes: Iterable[str] = (),
) -> Iterable[FieldError]:
    """A template has a pod spec that holds, and labels that are labels."""
    if not template or not template.get("spec"):
        yield FieldError(f"{path}.spec", None, "is required; describe the pod and its containers")
        return
    metadata = template.get("metadata") or {}
    yield from names.labels(f"{path}.metadata.labels", metadata.get("labels") or {})
    yield from check_podset(f"{path}.metadata.annotations", metadata.get("annotations") or {})
    yield from check_pod_spec(f"{path}.spec", template["spec"], restart_policies, more_volumes)


def _check_volumes(path: str, volumes: list[Manifest]) -> Iterable[FieldError]:
    given = [volume.get("name") or "" for volume in volumes]
    for index, name in enumerate(given):
        yield from names.dns_label(f"{path}[{index}].name", name)
        template = (volumes[index].get("ephemeral") or {}).get("volumeClaimTemplate") or {}
        where = f"{path}[{index}].ephemeral.volumeClaimTemplate"
        yield from names.labels(f"{where}.metadata.labels", (template.get("metadata") or {}).get("labels") or {})
        yield from check_claim_spec(f"{where}.spec", template.get("spec") or {})
    yield from names.distinct(f"{path}[{{}}].name", given, "volumes")
