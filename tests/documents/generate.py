"""Writes the documents that are made from the code: `make docs`. A test checks that they have not drifted."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import chart_files
from document_event import Event
from document_events import SECTIONS
from document_fields import described, title
from document_fields import rows as rows_of_fields
from document_kinds import BY_KIND, CHECKED_ONLY
from document_messages import MESSAGES
from document_security import security

from admission.domain.admit import admit
from admission.domain.definitions import UNRULED
from admission.domain.rules import RULES
from cluster_gateway.domain.ownership import field_rows, rows
from kube import KINDS, Store
from kube.kinds import KindInfo

ROOT = Path(__file__).resolve().parents[2]
VERBS = ("CREATE", "PATCH", "STATUS", "BIND", "EVICT", "DELETE")
MADE = "<!-- Made by `make docs`; do not edit. -->\n"


def table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    all_lines = [titles, ["---"] * len(titles), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in all_lines)


def events() -> str:
    """docs/events.md"""
    parts = [
        "# Events\n",
        MADE,
        "A service decides, and says so in its own log. A decision is named in the past tense: the name says what was "
        "decided, and the outcome in the facts says what came of it. `cluster_gateway` carries out whatever a decision "
        "changes; `admission` hears all of them, for `tidegate events`.\n",
        "*Carries* are the changes that a decision of this name may hold: `subject` is the object that it is about. One "
        "decision holds only what is needed, and is carried out whole or refused.\n",
    ]
    for section in SECTIONS:
        parts += [f"## {section.title}\n", _events(section.events)]
    parts += [
        "## Messages\n",
        "Subjects are made in one place, `tidegate.subjects`. The types are those of `proto/`.\n",
        table(
            ("subject", "what it carries", "sent by", "taken by", "kept"),
            ((f"`{one.subject}`", one.carries, one.sent_by, one.taken_by, one.kept) for one in MESSAGES),
        ),
    ]
    return "\n".join(parts)


def _events(those: Iterable[Event]) -> str:
    lines = (
        (
            f"`{event.name}`",
            event.service,
            event.meaning,
            _carries(event),
            ", ".join([*(["cluster_gateway"] if event.carries else []), *event.heard_by]),
        )
        for event in those
    )
    return table(("event", "emitted by", "meaning", "carries", "consumed by"), lines)


def _changes(event: Event) -> str:
    """The changes of an event, the kinds of each verb together."""
    kinds: dict[str, dict[str, None]] = {}
    for verb, kind in (change.split() for change in event.carries):
        kinds.setdefault(verb, {})[kind] = None
    return "; ".join(f"{verb} {', '.join(kinds[verb])}" for verb in VERBS if verb in kinds)


def _carries(event: Event) -> str:
    return "; ".join(part for part in (_changes(event), event.payload) if part)


FIELDS = (
    (
        "Pod",
        "existence, spec, labels, annotations",
        "users; job_controller for pods of jobs; cluster_gateway for those of workloads",
    ),
    ("Pod", "`spec.nodeName`", "gang_scheduler"),
    ("Pod", "the condition `PodScheduled` = False", "gang_scheduler"),
    ("Pod, PodGroup", "the annotations `tidegate.dev/admission` and `tidegate.dev/revoked`", "queue_manager"),
    ("Pod", "the condition `QuotaReserved`", "queue_manager"),
    ("Pod", "the rest of the status", "the node: node_agent, or cluster_gateway for simulated nodes"),
    ("PodGroup", "spec", "users; job_controller for groups of jobs"),
    ("PodGroup", "the phases `Pending` and `Inqueue`, the condition `Admitted`", "queue_manager"),
    (
        "PodGroup",
        "the other phases, `Inqueue` again after it ran, the counts, the conditions `Scheduled` and `Unschedulable`",
        "gang_scheduler",
    ),
    ("ResourceClaim", "`status.allocation`, `status.reservedFor`", "gang_scheduler"),
    ("ResourceClaim", "existence of those that are made from a template", "cluster_gateway"),
    ("Queue", "spec", "users"),
    ("ElasticQuota, ClusterQueue, LocalQueue, Cohort", "status", "queue_manager"),
    ("Queue", "status, the annotation `volcano.sh/closed-by-parent`", "queue_manager"),
    ("jobs of Volcano and Kubeflow, JobSet", "spec", "users"),
    ("jobs of Volcano and Kubeflow, JobSet", "status", "job_controller"),
    ("Command", "existence", "users; whom it is for deletes it"),
    ("Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, ResourceQuota", "status", "cluster_gateway"),
    (
        "PodMigrationJob",
        "status, the annotations of its course; existence of those that a plan asks for",
        "descheduler",
    ),
    ("Reservation", "existence of those that a migration makes", "descheduler"),
    ("Node", "inventory, labels and annotations of the agent", "node_agent"),
    (
        "Node",
        "batch and mid resources in `status.capacity` and `status.allocatable`, the condition `ResourcesLent`, the annotations "
        "`cpu-normalization-ratio`, `resource-amplification-ratio`, `originExtendedAllocatable` of `node.koordinator.sh`",
        "slo_controller",
    ),
    (
        "Node",
        "amplified amounts in `status.allocatable`, the annotation `raw-allocatable` of `node.koordinator.sh`",
        "cluster_gateway, or admission's webhook in front of an API server",
    ),
    (
        "ConfigMap",
        "the annotation `tidegate.dev/refused` of `koordinator-system/slo-controller-config`",
        "slo_controller",
    ),
    ("NodeResourceTopology", "batch resources of zones", "slo_controller"),
    ("Recommendation", "status", "slo_controller"),
    ("ScaledObject", "status", "inference_autoscaler"),
    (
        "InferenceService",
        "status; existence and spec of its Deployments, Services, autoscalers, HTTPRoutes and Ingresses",
        "inference_autoscaler",
    ),
    ("InferenceGraph", "status; existence and spec of its Deployment, Service and autoscaler", "inference_autoscaler"),
    ("HorizontalPodAutoscaler", "existence and spec of those that ScaledObjects make", "inference_autoscaler"),
    (
        "HorizontalPodAutoscaler",
        "status",
        "inference_autoscaler; on Kubernetes the cluster's own controller unless `horizontal` is set",
    ),
    (
        "Deployment, StatefulSet, ReplicaSet",
        "`spec.replicas`",
        "users; inference_autoscaler where an autoscaler names it",
    ),
    ("NodeSLO", "everything, unless a user made or changed it", "slo_controller"),
    (
        "NodeMetric, Device",
        "everything, unless another agent made them",
        "cluster_gateway, from the reports of node_agent",
    ),
    ("Node", "the condition `Ready` of a silent node", "cluster_gateway"),
    ("every object", "uid, creation and deletion time, generation, deletion with its owner", "cluster_gateway"),
)


def ownership() -> str:
    """docs/ownership.md"""
    lines = ((f"`{service}`", verb, kinds) for service, verb, kinds in rows())
    fields = ((f"`{service}`", verb, kind, named) for service, verb, kind, named in field_rows())
    return "\n".join(
        [
            "# Ownership\n",
            MADE,
            "Every field has one decider. Who wants a change in a field that another decides asks for it with a decision "
            "of its own.\n",
            "## What the gateway enforces\n",
            "`cluster_gateway` refuses any change that is not in this table, with the reason. Users write through "
            "`admission`, which has no decision log; nodes report.\n",
            table(("service", "may", "of"), lines),
            "## Who decides what inside an object\n",
            "Where two services change objects of one kind the gateway looks at single fields, too, and refuses a decision "
            "that changes another (conditions are named by their type, phases by their value):\n",
            table(("service", "may", "of", "the fields"), fields),
            "This is the whole division:\n",
            table(("kind", "field", "decider"), FIELDS),
        ]
    )


def supported_kinds() -> str:
    """docs/supported-kinds.md"""
    acted = [info for info in KINDS.values() if info.id in BY_KIND]
    stored = [info for info in KINDS.values() if info.id not in BY_KIND and info.id not in CHECKED_ONLY]
    return "\n".join(
        [
            "# Supported kinds\n",
            MADE,
            "What comes in is read by the shape of its kind, completed with the defaults of the system that it comes from, "
            "and checked. Then:\n",
            "- A kind or API group that is not on this page is **refused**, and so is a manifest that breaks a rule: each "
            "error names the field, its value and the rule. Nothing of a refused object is stored.\n"
            "- A field that is unknown to a job, a queue, a group or a runtime is kept, has no effect, and is told as a "
            "**warning**. Pods and workloads of Kubernetes are open: fields besides the known ones are kept without one.\n"
            "- A version of a group other than the one named here is taken for it, with a warning.\n"
            "- A status that a user sends is dropped, except of the kinds that are stored as they are.\n",
            "`tidegate apply --dry-run` shows all of it and stores nothing.\n",
            "## Kinds that somebody acts on\n",
            table(("kind", "API", "acted on by", "honoured", "taken, without effect"), map(_support, acted)),
            *_checked_only([info for info in KINDS.values() if info.id in CHECKED_ONLY]),
            "## Kinds that are stored as they are\n",
            "They can be written, read, watched and deleted. Nothing else happens. Whoever applies one may expect more of "
            "some of them, and is told so by a warning.\n",
            table(("kind", "API", "told"), ((one.kind, one.api_version, _told(one)) for one in stored)),
        ]
    )


def _support(info: KindInfo) -> tuple[str, ...]:
    one = BY_KIND[info.id]
    return info.kind, info.api_version, ", ".join(one.actors), one.honoured, one.idle


def _checked_only(checked: Sequence[KindInfo]) -> list[str]:
    rows = [(one.kind, one.api_version, CHECKED_ONLY[one.id]) for one in checked]
    title = "## Kinds that are checked, and that nobody acts on\n"
    return [title, table(("kind", "API", "why"), rows)] if rows else []


def _told(stored: KindInfo) -> str:
    """Whether whoever applies such a kind is warned; read from what admission says."""
    return "yes" if _warnings(stored) else ""


def _warnings(info: KindInfo) -> tuple[str, ...]:
    manifest = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": "one"}}
    return admit(manifest, None, Store()).warnings


def fields() -> str:
    """docs/fields.md"""
    unruled = ", ".join(f"{KINDS[kind].kind} ({KINDS[kind].api_version})" for kind in UNRULED)
    parts = [
        "# Fields\n",
        MADE,
        "What becomes of each field of the kinds that a cluster does not have by itself.\n",
        "- **honoured**: a service acts on it; [supported kinds](supported-kinds.md) says how. Handed on: it is part of an object "
        "that is made, and means there what it means in Kubernetes.\n"
        "- **without effect**: it is kept, nobody acts on it, and whoever gives it gets a warning, by `tidegate apply` as by "
        "`kubectl apply`.\n"
        "- A field that is not here is unknown: it has no effect and is told as a warning. `tidegate apply` keeps it; an API server "
        "with Tidegate's definitions tells it and drops it.\n"
        "- A value that breaks a rule, or is of another form than the one here, is **refused**, with the field, the value and the "
        "rule.\n",
        "`*` stands for a name of the user's choice, `[]` for each of a list. Pod templates and specs are Kubernetes' own: the node "
        "carries them out.\n",
        f"{unruled} are written by services and agents alone, and are stored as they are.\n",
    ]
    for kind in described():
        told = ((f"`{one.path}`", one.form, one.effect) for one in rows_of_fields(kind))
        parts += [title(kind), table(("field", "form", ""), told)]
    return "\n".join(parts)


def documents() -> dict[Path, str]:
    """Every document that is made, by its path."""
    folder = ROOT / "docs"
    return {
        folder / "events.md": events(),
        folder / "fields.md": fields(),
        folder / "ownership.md": ownership(),
        folder / "supported-kinds.md": supported_kinds(),
        folder / "security.md": security(table, MADE),
        **{ROOT / "deploy" / "helm" / path: content for path, content in chart_files.files().items()},
    }


def unruled() -> set[str]:
    """The kinds that admission has no rules for."""
    return KINDS.keys() - RULES.keys()


def main() -> None:
    """Write them; says which have changed."""
    for file, content in documents().items():
        if not file.exists() or file.read_text() != content:
            file.write_text(content)
            sys.stdout.write(f"{file.relative_to(ROOT)} is new\n")


if __name__ == "__main__":
    main()
