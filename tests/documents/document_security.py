"""docs/security.md: who may do what, made from the charts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from bus_conduct import beside_kubelets
from chart_files import files

CHARTS = Path(__file__).resolve().parents[2] / "deploy" / "helm"
Rows = Iterator[tuple[str, ...]]

INTRODUCTION = """\
What each part of Tidegate may do when it runs on a cluster by its [charts](operations/install.md). The tables are made from the
charts; tests run the services under exactly these rights and compare them with what was asked for.

## Who talks to whom

- Only `cluster_gateway` and `admission` have a token for the API server, and so has, while it runs, the Job that defines kinds.
  All other pods have none (`automountServiceAccountToken: false`), and their accounts have no rights. The node agent has one that
  the API server does not take (its audience is `tidegate`): it shows the gateway on which node its pod is.
- Everybody else talks to the message bus alone, each service with a user of its own. Passwords are made at the first install,
  kept in a Secret for each service (`<release>-nats-<service>`), and stay over upgrades. A service reads its own again at each connect.
- Users and programs talk to `admission`, over TLS with the token by which the cluster knows them; it asks the cluster who they are and
  what they may do. The API server talks to its webhooks. NetworkPolicies let nothing else through, where the
  cluster's network enforces them.
"""

RIGHTS = """\
## Rights at the API server

Account and role of a service are called as its Deployment. *When* is the value of its chart that the right depends on; with it
off the rule is not there. Nothing may be done to roles.

`writesForUsers` is off: with it `tidegate apply` is carried to the API server in the user's name, which takes the right to act as
anybody, and so makes the gateway as powerful as an administrator. Reading and asking (`get`, `explain`, `whatif`) need nothing of
it, and whoever writes with kubectl does so with their own rights.

What `cluster_gateway` reads becomes the facts that all services decide by. Of Secrets only the names of their keys do; without
`secrets: true` MPIJobs and Volcano's plug-in `ssh` fail, with the reason. `update` of finalizers is asked for by clusters that guard
owners (`OwnerReferencesPermissionEnforcement`, as OpenShift does): pods that are made for a job name it as their owner.
"""

BUS = """\
## Rights on the bus

Words of `deploy/topology/permissions.yaml`. From it `bus.permissions` makes the users of the NATS server, with the subjects of
JetStream's own API that each needs: streams are made by who writes to them, and nobody may delete one.
"""

REST = """\
What this does not do: who may read a stream may read all of it, and may have it delivered to a subject of its choice, which
others would not take for a message, since its form is not theirs.

**Node agents** of all nodes are one user, which may report and nothing else: NATS has its users in its configuration, and a login
for each node would be one more part that follows nodes as they come and go. What counts is not who publishes but what the report
shows: it has the token that the kubelet gave the agent's pod, which ends with the pod. The gateway asks the API server whose it is,
and takes a report about the node on which that pod is, and about no other (`cluster-gateway.agentAccount`). So a node that was taken
over lies about itself alone. It could see answers to other agents (that a report was stored, or why not) and keep the gateway
busy with reports that are refused.

**TLS.** With `global.nats.tls.enabled: true` the bus takes no connection without TLS, from services and from its own servers, and
services tell no password to a server for which `ca.crt` does not vouch, also where somebody between them says that there is no TLS.
The certificate is the chart's (made once, for ten years; delete its Secret and upgrade to have another), cert-manager's
(`global.nats.tls.certManager.enabled`) or one that is there (`global.nats.tls.secretName`, for the names `<release>-nats`,
`<release>-nats.<namespace>.svc` and `<release>-nats-<n>.<release>-nats-servers`, as server and as client). A renewed one is used for
new connections without a restart, as is a renewed `ca.crt`. An existing NATS is spoken to over TLS where its address begins with
`tls://`, or where `global.nats.external.authoritySecret` names a Secret with its `ca.crt`. It is off by default: then whoever reads
the traffic between pods reads passwords.

## Pods

All pods but the node agent's meet the restricted profile of Kubernetes: no root, no privileges, all capabilities dropped,
`RuntimeDefault` seccomp, a root file system that cannot be written. They write to `/tmp` and `/var/lib/tidegate`, which end with
the pod; the bus writes to its volume.

The node agent reads the machine's control groups, which belong to root, and writes there what its node's rules say. It runs as
user 0 with the one capability `DAC_READ_SEARCH`, sees of the machine `/sys/fs/cgroup`, the socket of the container runtime's plug-ins
and a folder of its own, and is in no namespace of the host's. With `enforce: false` it has the first read-only, and not the second.
Who runs as it may slow down or throttle what runs on that node, and, by the socket, change containers before they start.
Because of its `hostPath` volumes a namespace that enforces the restricted or the baseline profile does not take it:
`node-agent.enabled: false` leaves it out, or label the namespace `pod-security.kubernetes.io/enforce: privileged`.

## Webhooks

Helm makes the two configurations and the Secret of the certificate empty, and takes them away with the release. `admission` may
fill in these three objects and make none. Namespaces that are never asked about, and what happens when `admission` does not answer,
are in [On Kubernetes](kubernetes.md).

## Supply

Images hold Python packages by the hashes of `requirements.lock`, run as user 65532, and are named by tag or digest
(`image.digest`).
"""


def security(table: Any, made: str) -> str:
    """The document; ``table`` makes a table in Markdown."""
    return (
        "\n".join(
            [
                "# Security\n",
                made,
                INTRODUCTION,
                RIGHTS,
                table(("account", "when", "where", "API group", "resources", "verbs"), _rights()),
                BUS,
                table(("service", "what it does", "of"), _bus()),
                REST.rstrip("\n"),
            ]
        )
        + "\n"
    )


ACCOUNTS = (
    (
        "`admission`",
        "admission",
        {
            "api": "always",
            "webhooks": "`webhooks.enabled`",
            "metricsApis": "`metricsApis`",
            "ownCertificate": "no cert-manager",
        },
    ),
    (
        "`cluster_gateway`",
        "cluster-gateway",
        {"always": "always", "secrets": "`secrets`", "agents": "node agents", "writesForUsers": "`writesForUsers`"},
    ),
    (
        "Job that defines kinds",
        "tidegate",
        {"definitions": "`definitions.install`", "servingRuntimes": "`definitions.servingRuntimes`"},
    ),
)


def _rights() -> Rows:
    for account, chart, parts in ACCOUNTS:
        file = f"{chart}/files/rules.yaml"
        written: Mapping[str, Any] = yaml.safe_load(files().get(file) or (CHARTS / file).read_text())
        assert written.keys() == parts.keys(), chart
        for part, rules in written.items():
            for where, those in rules.items():
                place = "cluster" if where == "cluster" else "its namespace"
                for rule in those:
                    yield account, parts[part], place, _groups(rule), _resources(rule), ", ".join(rule["verbs"])


def _groups(rule: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(group or "core" for group in rule["apiGroups"])


def _resources(rule: Mapping[str, Sequence[str]]) -> str:
    names = rule.get("resourceNames", ())
    only = f" named {_listed(names)}" if 0 < len(names) < 4 else " of Tidegate's kinds" if names else ""
    return _listed(rule["resources"]) + only


WORDS = {
    "writes": "appends to the log",
    "snapshots": "snapshots the log",
    "reads": "reads the log",
    "leads": "competes for the lease",
    "sets": "sets the last value of",
    "follows": "reads the last value of",
    "serves": "answers",
    "asks": "asks",
    "hears": "hears",
    "tells": "publishes",
}


def _bus() -> Rows:
    for service, conduct in beside_kubelets().items():
        for word, said in WORDS.items():
            value = getattr(conduct, word)
            if value:
                yield f"`{service}`", said, _listed([value] if isinstance(value, str) else value)
        if conduct.parks:
            yield f"`{service}`", "puts aside what it cannot handle", f"`tidegate.dead.{service}`"
        if conduct.reads_parked:
            yield f"`{service}`", "lists what was put aside", "`tidegate.dead.*`"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
