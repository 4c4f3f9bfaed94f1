"""The status of an InferenceService, in KServe's words."""

from collections.abc import Iterable, Iterator

from inference_autoscaler.domain.horizontal.status import changed_conditions
from inference_autoscaler.domain.rollout.trial import BACK, PROMOTED
from inference_autoscaler.domain.routing import Routing
from inference_autoscaler.domain.serving.children import component_name
from inference_autoscaler.domain.serving.component import EXPLAINER, PREDICTOR, TRANSFORMER, Component
from inference_autoscaler.domain.serving.inference_service import STANDARD, Inference
from inference_autoscaler.domain.serving.model_storage import CONTAINER as FETCHING
from inference_autoscaler.domain.serving.outcome import Outlook, Standing
from inference_autoscaler.domain.serving.runtimes import CONTAINER, RUNTIME
from kube import Manifest, Object, merge

_Told = tuple[str, str, str]
SIZED_BY_GOAL = "SizedByGoal"
"""The condition that says whether a goal decides, and what is in its way."""


def status_patch(
    item: Object, spec: Inference | str, found: Outlook, pods: Iterable[Object], routing: Routing, now: int
) -> Manifest:
    """What of the status is to be changed; empty where nothing is. ``pods`` are the predictor's newest."""
    parts: Manifest = {"observedGeneration": item.metadata.get("generation", 1)}
    if isinstance(spec, Inference):
        parts["deploymentMode"] = spec.mode
        parts |= _addresses(item, spec, routing) if not found.trouble and not found.stopped else {}
        if spec.predictor.model is not None:
            parts["modelStatus"] = _model_status(found, pods)
        if spec.predictor.runtime is not None:
            kind = "servingRuntimeName" if spec.predictor.runtime.kind == RUNTIME else "clusterServingRuntimeName"
            parts[kind] = spec.predictor.runtime.name
        if found.standings:
            parts["components"] = {one.role: _component(item, spec, one, found, routing) for one in spec.components}
    patch = {name: value for name, value in parts.items() if merge(item.status, {name: value}) != item.status}
    conditions = changed_conditions(item.status, _listed(_conditions(item, spec, found)), now)
    return {**patch, **({"conditions": conditions} if conditions else {})}


def first_condition(item: Object, spec: Inference | str, found: Outlook) -> _Told:
    """How it is, as status, reason and message."""
    return _conditions(item, spec, found)["Ready"]


def _component(item: Object, spec: Inference, component: Component, found: Outlook, routing: Routing) -> Manifest:
    standing = found.standings[component.role]
    told = standing.rollout.manifest(standing.rollout.created) if standing.rollout is not None else {}
    name = component_name(item, component)
    return {
        **told,
        "url": _url(item, spec, name, routing),
        "address": {"url": f"http://{name}.{item.namespace}.svc.cluster.local"},
    }


def _addresses(item: Object, spec: Inference, routing: Routing) -> Manifest:
    """From outside, and inside the cluster: in standard mode the Service of whoever sees requests first."""
    front = next((one for one in spec.components if one.role == TRANSFORMER), spec.predictor)
    inside = component_name(item, front) if spec.mode == STANDARD else item.name
    return {
        "url": _url(item, spec, item.name, routing),
        "address": {"url": f"http://{inside}.{item.namespace}.svc.cluster.local"},
    }


def _url(item: Object, spec: Inference, name: str, routing: Routing) -> str:
    return f"http://{routing.host(name, item.namespace, is_standard=spec.mode == STANDARD)}"


def _model_status(found: Outlook, pods: Iterable[Object]) -> Manifest:
    """How far the model is; None takes away what is no longer so."""
    if found.trouble:
        failure = {"reason": found.reason, "message": found.trouble}
        return {"transitionStatus": "InvalidSpec", "lastFailureInfo": failure}
    standing = found.standings.get(PREDICTOR)
    if standing is None:
        return {"transitionStatus": "InProgress", "lastFailureInfo": None}
    active = "Loaded" if standing.is_serving else ""
    broken = next(_failures(pods), None)
    copies = {"totalCopies": standing.serving, "failedCopies": 0 if broken is None else 1}
    if broken is not None:
        states = {"activeModelState": active, "targetModelState": "FailedToLoad"}
        return {
            "transitionStatus": "BlockedByFailedLoad",
            "lastFailureInfo": broken,
            "states": states,
            "copies": copies,
        }
    is_newest = standing.rollout is None or standing.rollout.created == standing.rollout.ready
    done = standing.is_serving and is_newest
    states = {"activeModelState": active, "targetModelState": "Loaded" if done else "Loading"}
    way = "UpToDate" if done else "InProgress"
    return {"transitionStatus": way, "lastFailureInfo": None, "states": states, "copies": copies}


def _failures(pods: Iterable[Object]) -> Iterator[Manifest]:
    """Why a model does not load: who fetches it ended with an error, or its server ends again and again."""
    for pod in pods:
        for listed, name in (("initContainerStatuses", FETCHING), ("containerStatuses", CONTAINER)):
            for status in pod.status.get(listed) or ():
                ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get(
                    "terminated"
                )
                if status.get("name") != name or not ended or not ended.get("exitCode") or status.get("ready"):
                    continue
                yield {
                    "reason": "ModelLoadFailed",
                    "exitCode": int(ended["exitCode"]),
                    "message": str(ended.get("message") or ended.get("reason") or ""),
                    "location": pod.name,
                }


def _conditions(item: Object, spec: Inference | str, found: Outlook) -> dict[str, _Told]:
    if found.stopped:
        stopped = ("False", "Stopped", "the service is stopped")
        said = ("True", "Stopped", "the annotation serving.kserve.io/stop says so")
        return {"PredictorReady": stopped, "Ready": stopped, "Stopped": said}
    runs: dict[str, _Told] = {"Stopped": ("False", "NotStopped", "it runs")}
    if found.trouble:
        trouble = ("False", found.reason, found.trouble)
        return {"PredictorReady": trouble, "Ready": trouble, **runs}
    told = {f"{role.capitalize()}Ready": _readiness(one) for role, one in found.standings.items()}
    if isinstance(spec, Inference):
        told |= _ingress(spec, found)
    if found.trial is not None:
        status = {PROMOTED: "True", BACK: "False"}.get(found.trial.state, "Unknown")
        runs["RolledOut"] = (status, found.trial.reason, f"{found.trial.revision}: {found.trial.words}")
    if found.goal is not None:
        runs[SIZED_BY_GOAL] = found.goal
    elif any(one.get("type") == SIZED_BY_GOAL for one in item.status.get("conditions") or ()):
        runs[SIZED_BY_GOAL] = ("False", "NoGoal", "it states no goal any more")
    if found.canaries:
        waiting = [name for name, serves in found.canaries.items() if not serves]
        words = f"no pod of {', '.join(waiting)} serves yet" if waiting else "pods of each serve"
        runs["CanaryPredictorReady"] = ("Unknown" if waiting else "True", "CanariesLookedAt", words)
    worst = next((one for one in told.values() if one[0] != "True"), told["PredictorReady"])
    return {**told, "Ready": worst, **runs}


def _readiness(standing: Standing) -> _Told:
    if standing.is_serving:
        return "True", "MinimumReplicasAvailable", "requests are answered"
    return "Unknown", "MinimumReplicasUnavailable", f"no pod of {standing.name} serves yet"


def _ingress(spec: Inference, found: Outlook) -> dict[str, _Told]:
    """Requests find their way as soon as those components are there that they come to."""
    waiting = [
        role
        for role in (PREDICTOR, TRANSFORMER, EXPLAINER)
        if role in found.standings and not found.standings[role].is_serving
    ]
    if waiting:
        return {
            "IngressReady": (
                "False",
                f"{waiting[0].capitalize()} ingress not created",
                f"the {waiting[0]} is not ready",
            )
        }
    if found.unrouted:
        return {"IngressReady": ("False", "RouteNotReady", found.unrouted)}
    told = {"IngressReady": ("True", "RequestsRouted", "requests are routed by its components' traffic")}
    if spec.mode != STANDARD:
        told |= {"RoutesReady": told["IngressReady"]}
    return told


def _listed(conditions: dict[str, _Told]) -> list[Manifest]:
    return [
        {"type": name, "status": status, "reason": reason, "message": message}
        for name, (status, reason, message) in conditions.items()
    ]
