"""What an API server is told of our webhooks: which requests they are asked about, and what happens when they do not answer.

Two promises. Objects of our own kinds never get past the rules: while nobody answers they cannot be written. Pods never wait for
us: while nobody answers they go their way unseen. And nobody is asked about what cannot be touched: the API server evaluates
selectors and conditions itself.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from admission.domain.definitions import DEFINED
from admission.domain.pod import DISRUPTION_KEYS
from admission.domain.pod_review import UNCHOSEN, SchedulerRule
from admission.domain.qos_class import BATCH_RESOURCES, PRIORITY_LABEL
from admission.domain.rules import RULES, Rules
from admission.domain.topology import PODSET_ANNOTATIONS
from admission.webhooks.match_conditions import (
    IN_CLUSTER_NAME,
    annotated,
    chosen_by_nobody,
    marked,
    selected,
    written_by_others,
)
from kube import KINDS, Manifest
from kube.amplification import RATIOS, RAW
from kube.colocation import CLASS_LABEL, QOS_LABEL

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
CONFIGURATION = "tidegate-admission"
MUTATE, VALIDATE, PROFILES, SCHEDULER, PODS, NODES = (
    "/mutate", "/validate", "/pods/profiles", "/pods/scheduler", "/pods/validate", "/nodes/amounts",
)  # fmt: skip
"""The paths that are asked."""
TIMEOUT_SECONDS = 5
NEVER = ("kube-system", "kube-node-lease")
"""Namespaces that no webhook is asked about: a cluster must be able to start and to mend itself."""
INJECTED = "cert-manager.io/inject-ca-from"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the webhooks are served: ``url`` outside of the cluster, else the service ``name`` in ``namespace``."""

    namespace: str
    name: str
    url: str = ""

    def client(self, path: str) -> Manifest:
        """How the API server reaches ``path``."""
        if self.url:
            return {"url": self.url.rstrip("/") + path}
        return {"service": {"name": self.name, "namespace": self.namespace, "path": path, "port": 443}}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about. ``profiles`` are the specs of the profiles that there are.

    ``unreviewed`` are users whose writes to our kinds are decisions, which were made by the rules already; where the system has no
    user of its own, a decision is what says so by its field manager. ``injected_from`` names the certificate of cert-manager
    (``NAMESPACE/NAME``) whose authority cert-manager itself fills in.
    """

    place: Place
    scheduler: SchedulerRule | None = None
    profiles: Sequence[Manifest] = ()
    unreviewed: Sequence[str] = ()
    injected_from: str = ""


def configurations(asked: Asked, authority: bytes | None) -> dict[str, Manifest]:
    """The two configurations, by their plural names. ``authority`` is whom the API server trusts; None: others say it."""
    return {
        MUTATING: _configuration(
            "MutatingWebhookConfiguration",
            asked,
            authority,
            [_kinds(asked, MUTATE, _mutated()), *_shaping(asked), _amounts(asked)],
        ),
        VALIDATING: _configuration(
            "ValidatingWebhookConfiguration", asked, authority, [_kinds(asked, VALIDATE, _validated()), _judging(asked)]
        ),
    }


def _configuration(kind: str, asked: Asked, authority: bytes | None, webhooks: list[Manifest]) -> Manifest:
    for webhook in webhooks:
        if authority is not None and not asked.injected_from:
            webhook["clientConfig"]["caBundle"] = base64.b64encode(authority).decode()
        if kind.startswith("Mutating"):
            webhook["reinvocationPolicy"] = "IfNeeded"
    metadata: Manifest = {"name": CONFIGURATION, "labels": {"app.kubernetes.io/part-of": "tidegate"}}
    if asked.injected_from:
        metadata["annotations"] = {INJECTED: asked.injected_from}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "webhooks": webhooks,
    }


def _webhook(asked: Asked, name: str, path: str, rules: list[Manifest], namespaces: Manifest | None = None) -> Manifest:
    """A webhook that every request of ``rules`` passes by, in the ``namespaces`` and outside of those that are never asked of."""
    chosen = namespaces or {}
    never = sorted({asked.place.namespace, *NEVER})
    outside = {"key": IN_CLUSTER_NAME, "operator": "NotIn", "values": never}
    expressions = [*(chosen.get("matchExpressions") or ()), outside]
    labels = {"matchLabels": chosen["matchLabels"]} if chosen.get("matchLabels") else {}
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": asked.place.client(path),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "namespaceSelector": {**labels, "matchExpressions": expressions},
        "rules": rules,
    }


def _kinds(asked: Asked, path: str, rules: list[Manifest]) -> Manifest:
    webhook = _webhook(asked, "admission.tidegate.dev", path, rules)
    return {**webhook, "failurePolicy": "Fail", "matchConditions": written_by_others(asked.unreviewed)}


def _shaping(asked: Asked) -> Iterable[Manifest]:
    """What changes new pods: first the profiles, for one of them may choose a scheduler."""
    if asked.profiles:
        selectors = [spec.get("namespaceSelector") for spec in asked.profiles]
        alike = selectors[0] if all(one == selectors[0] for one in selectors) else None
        webhook = _webhook(asked, "profiles.pods.tidegate.dev", PROFILES, _pods("CREATE"), alike)
        conditions = selected(asked.profiles)
        yield {**webhook, "matchConditions": conditions} if conditions else webhook
    if asked.scheduler is not None:
        webhook = _webhook(asked, "scheduler.pods.tidegate.dev", SCHEDULER, _pods("CREATE"), asked.scheduler.namespaces)
        webhook["objectSelector"] = asked.scheduler.pods
        yield {**webhook, "matchConditions": [chosen_by_nobody(UNCHOSEN)]}


def _amounts(asked: Asked) -> Manifest:
    """What kubelets say that their nodes have, where it is amplified, or was."""
    webhook = _webhook(asked, "amounts.nodes.tidegate.dev", NODES, [_rule("", ["nodes/status"], ["UPDATE"], "Cluster")])
    return {**webhook, "matchConditions": [annotated((RATIOS, RAW))]}


def _judging(asked: Asked) -> Manifest:
    """What is checked of pods: only those are asked about that use what the API server knows nothing of."""
    webhook = _webhook(asked, "rules.pods.tidegate.dev", PODS, _pods("CREATE", "UPDATE"))
    labels, annotations = (QOS_LABEL, CLASS_LABEL, PRIORITY_LABEL), (*DISRUPTION_KEYS, *PODSET_ANNOTATIONS)
    return {**webhook, "matchConditions": [marked(labels, annotations, BATCH_RESOURCES)]}


def _pods(*operations: str) -> list[Manifest]:
    return [_rule("", ["pods"], operations, "Namespaced")]


def _mutated() -> list[Manifest]:
    return _rules(("CREATE", "UPDATE"), lambda _: True)


def _validated() -> list[Manifest]:
    """Deletions are asked about only where a rule may forbid them: nothing else has to wait for us to go."""
    deleted = _rules(("DELETE",), lambda rules: bool(rules.deletes))
    return [*_rules(("CREATE", "UPDATE"), lambda _: True), *deleted]


def _rules(operations: Sequence[str], has: Callable[[Rules], bool]) -> list[Manifest]:
    """One rule per API group: the kinds that no cluster has by itself, and whose rules are such."""
    groups: dict[str, set[str]] = {}
    for kind in DEFINED:
        if kind in RULES and has(RULES[kind]):
            groups.setdefault(KINDS[kind].group, set()).add(KINDS[kind].plural)
    return [_rule(group, sorted(plurals), operations, "*") for group, plurals in sorted(groups.items())]


def _rule(group: str, plurals: list[str], operations: Sequence[str], scope: str) -> Manifest:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": plurals,
        "scope": scope,
    }
