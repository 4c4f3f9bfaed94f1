"""Controllers and schedulers of the field that run on a cluster, and what they would share with Tidegate."""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate_cli.check_cluster.cluster import Cluster, Program
from tidegate_cli.check_cluster.finding import Finding, Level


@dataclass(frozen=True, slots=True)
class _Peer:
    name: str
    groups: tuple[str, ...] = ()
    """The API groups on whose objects it acts."""
    schedules: str = ""
    """The schedulerName whose pods it places."""
    setting: str = ""
    """The setting of a service by which its objects are left to it."""
    does: str = ""
    """What it does, where the groups do not say it."""
    leaves: str = ""
    """The objects that it leaves behind. Tidegate makes them, too, and leaves alone what others made."""


_VOLCANO = ("batch.volcano.sh", "scheduling.volcano.sh", "bus.volcano.sh", "flow.volcano.sh")
_KOORDINATOR = ("scheduling.koordinator.sh", "scheduling.sigs.k8s.io", "quota.koordinator.sh")

_PEERS = {
    "vc-scheduler": _Peer("Volcano's scheduler", ("scheduling.volcano.sh",), "volcano"),
    "vc-controller-manager": _Peer("Volcano's controllers", _VOLCANO),
    "kueue": _Peer("Kueue", ("kueue.x-k8s.io",)),
    "koord-scheduler": _Peer("Koordinator's scheduler", _KOORDINATOR, "koord-scheduler"),
    "koord-manager": _Peer(
        "Koordinator's manager",
        ("slo.koordinator.sh", "config.koordinator.sh", "analysis.koordinator.sh"),
        leaves="nodeslos",
    ),
    "koordlet": _Peer(
        *("Koordinator's agent", ("slo.koordinator.sh",)),
        setting="node-agent.enforce",
        does="measures nodes and holds best effort back on them",
        leaves="nodemetrics,devices",
    ),
    "koord-descheduler": _Peer("Koordinator's descheduler", ("scheduling.koordinator.sh",)),
    "training-operator": _Peer("Kubeflow's training operator", ("kubeflow.org",)),
    "mpi-operator": _Peer("the MPI operator", ("kubeflow.org",)),
    "trainer-controller-manager": _Peer("Kubeflow's trainer", ("trainer.kubeflow.org",)),
    "jobset": _Peer("JobSet's controller", ("jobset.x-k8s.io",)),
    "kserve-controller": _Peer(
        "KServe's controller", ("serving.kserve.io",), setting="inference_autoscaler.inference_services"
    ),
    "keda": _Peer("KEDA's operator", ("keda.sh",), setting="inference_autoscaler.scaled_objects"),
    "kube-scheduler": _Peer("kube-scheduler", (), "default-scheduler"),
}
"""By the name of their image, registry and tag left out."""

_STAYS = {
    "descheduler": "it evicts by its own policy, which is respected; `--set descheduler.strategies=JSON` has the same strategies",
}
"""Programs beside which Tidegate runs, and why they are still needed."""

_WEBHOOKS = ("volcano-", "kueue-", "koord-", "validator.training-operator", "validator.trainer", "jobset-")
"""How the names of the registrations of these systems begin."""


def peers(cluster: Cluster, scheduler_names: frozenset[str]) -> Iterable[Finding]:
    """Who acts on the same objects, and whose pods stay theirs when Tidegate places those of ``scheduler_names``."""
    programs = cluster.programs()
    for program in programs:
        peer = _PEERS.get(program.image)
        if peer is not None:
            yield from _beside(program, peer, scheduler_names)
        elif program.image in _STAYS:
            yield Finding(Level.NOTE, program.words, f"stays: {_STAYS[program.image]}")
    yield from _left_webhooks(cluster)


def _beside(program: Program, peer: _Peer, scheduler_names: frozenset[str]) -> Iterable[Finding]:
    stop = f"kubectl -n {program.namespace} scale {program.kind.lower()} {program.name} --replicas=0"
    advice = f"before Tidegate starts: {stop}" if program.kind in ("Deployment", "StatefulSet") else "stop it first"
    if peer.leaves:
        advice += f", and delete what it leaves behind: kubectl delete {peer.leaves} --all"
    if peer.setting:
        advice += f"; or leave them to it: --set {peer.setting}=false"
    if peer.schedules and peer.schedules in scheduler_names:
        text = f"{peer.name} places the pods of schedulerName {peer.schedules}, as Tidegate would"
        yield Finding(Level.CONFLICT, program.words, text, advice)
    elif peer.schedules:
        text = f"{peer.name} keeps the pods of schedulerName {peer.schedules}; Tidegate counts them as used room"
        yield Finding(Level.NOTE, program.words, text)
    if peer.groups and not (peer.schedules and peer.schedules not in scheduler_names):
        does = peer.does or f"acts on objects of {', '.join(peer.groups)}"
        text = f"{peer.name} {does}, as Tidegate would"
        yield Finding(Level.CONFLICT, program.words, text, advice)


def _left_webhooks(cluster: Cluster) -> Iterable[Finding]:
    for registration in cluster.webhooks:
        name = str(registration["metadata"]["name"])
        if name.startswith(_WEBHOOKS):
            kind = str(registration["kind"])
            text = "asks a service of the system that is replaced; once that is stopped, writes of its kinds fail"
            advice = f"with that system: kubectl delete {kind.lower()} {name}"
            yield Finding(Level.DIFFERS, f"{kind} {name}", text, advice)
