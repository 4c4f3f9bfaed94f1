"""Canaries of InferenceServices in standard mode: predictors beside the stable one, each with a share of the requests."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.shapes import within
from kube import Manifest

_STABLE = ("RawDeployment", "Standard")
_NOT_OF_CANARIES = ("maxReplicas", "scaleTarget", "scaleMetric", "autoScaling", "workerSpec")


def check_canaries(spec: Manifest, mode: str) -> Iterable[FieldError]:
    """Each has a name of its own and what runs it; the shares leave the stable one something or nothing, not less."""
    canaries: list[Manifest] = spec.get("canary") or []
    if not canaries:
        return
    if mode not in _STABLE:
        yield FieldError("spec.canary", None, "is for standard mode; revisions of Serverless have canaryTrafficPercent")
    stable: Manifest = spec.get("predictor") or {}
    if not stable.get("model"):
        yield FieldError(
            "spec.canary", None, "needs a predictor with a model, which the canary's may take the place of"
        )
    names = [str((one.get("predictor") or {}).get("name") or "") for one in canaries]
    for index, one in enumerate(canaries):
        yield from _check_one(f"spec.canary[{index}]", one, names, stable)
    shares = [one.get("trafficPercent") or 0 for one in canaries]
    if sum(shares) > 100:
        yield FieldError("spec.canary", None, f"trafficPercent of all canaries together is {shares}, more than 100")


def _check_one(path: str, canary: Manifest, names: list[str], stable: Manifest) -> Iterable[FieldError]:
    predictor: Manifest = canary.get("predictor") or {}
    name, share = str(predictor.get("name") or ""), canary.get("trafficPercent")
    if not name:
        yield FieldError(f"{path}.predictor.name", None, "is required: its pods are named after it")
    elif names.count(name) > 1 or name == stable.get("name"):
        yield FieldError(f"{path}.predictor.name", name, "must be its own")
    if share is None:
        yield FieldError(f"{path}.trafficPercent", None, "is required")
    yield from within(f"{path}.trafficPercent", share, 0, 100)
    if not predictor.get("model"):
        yield FieldError(f"{path}.predictor.model", None, "is required: a model that may take the stable one's place")
    for field in _NOT_OF_CANARIES:
        if predictor.get(field) is not None:
            yield FieldError(f"{path}.predictor.{field}", None, "is the stable predictor's to say")
    least, stable_least = predictor.get("minReplicas"), stable.get("minReplicas", 1)
    if least is not None and least > stable_least:
        rule = f"must be at most that of the stable predictor, which is {stable_least}"
        yield FieldError(f"{path}.predictor.minReplicas", least, rule)
