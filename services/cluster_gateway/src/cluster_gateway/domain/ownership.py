"""Every field has one decider: which service may do what to which kinds. Anything else is refused."""

from kube import Verb

_POD = "Pod"
_GROUP = "PodGroup.scheduling.volcano.sh"
_QUEUE = "Queue.scheduling.volcano.sh"
_COMMAND = "Command.bus.volcano.sh"
_KUEUE = ("ClusterQueue.kueue.x-k8s.io", "LocalQueue.kueue.x-k8s.io", "Cohort.kueue.x-k8s.io")
_QUOTA = "ElasticQuota.scheduling.sigs.k8s.io"
_CLAIM = "PersistentVolumeClaim"
_RESERVATION = "Reservation.scheduling.koordinator.sh"
_ANY = "*"

_MAY: dict[str, dict[Verb, tuple[str, ...]]] = {
    "job_controller": {
        Verb.CREATE: (_ANY,),
        Verb.PATCH: (_ANY,),
        Verb.STATUS: (_ANY,),
        Verb.DELETE: (_ANY,),
    },
    "queue_manager": {
        Verb.STATUS: (_GROUP, _QUEUE, _POD, _QUOTA, *_KUEUE),
        Verb.PATCH: (_GROUP, _QUEUE, _POD),
        Verb.DELETE: (_COMMAND,),
    },
    "gang_scheduler": {
        Verb.BIND: (_POD,),
        Verb.EVICT: (_POD,),
        Verb.STATUS: (_POD, _GROUP, _RESERVATION),
        Verb.PATCH: (_CLAIM,),
        Verb.DELETE: (_RESERVATION,),
    },
}

_NEVER_BY_JOBS = ("Node", _QUEUE)


def refusal(service: str, verb: Verb, kind: str) -> str:
    """Why ``service`` may not do this; empty when it may."""
    kinds = _MAY.get(service, {}).get(verb, ())
    if kind in kinds or (_ANY in kinds and kind not in _NEVER_BY_JOBS):
        return ""
    return f"{service} does not decide {verb.name} of {kind}"


def rows() -> list[tuple[str, str, str]]:
    """The table as (service, verb, kinds), for the document."""
    return [(service, verb.name, ", ".join(kinds)) for service, verbs in _MAY.items() for verb, kinds in verbs.items()]
