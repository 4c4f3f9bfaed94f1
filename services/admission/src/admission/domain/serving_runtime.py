"""ServingRuntimes: what runs the models of InferenceServices, as KServe's webhook checks it."""

from collections.abc import Collection, Iterable

from admission.domain.errors import FieldError
from admission.domain.pod_template import POD_SPEC, check_pod_spec
from admission.domain.shapes import ANYTHING, TEXT, TEXTS, TRUTH, WHOLE, Idle, ListOf, Reading, fields, within
from admission.domain.world import Review
from kube import Manifest

_OF_RUNTIME = frozenset(
    [
        *("supportedModelFormats", "multiModel", "disabled", "protocolVersions", "workerSpec", "replicas"),
        *("grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "storageHelper", "builtInAdapter"),
        *("labels", "annotations"),
    ]
)
RUNTIME_SPEC = fields(
    supportedModelFormats=ListOf(fields(name=TEXT, version=TEXT, autoSelect=TRUTH, priority=WHOLE)),
    protocolVersions=TEXTS,
    disabled=TRUTH,
    multiModel=TRUTH,
    workerSpec=Idle(fields(containers=ListOf(ANYTHING))),
    grpcEndpoint=Idle(TEXT),
    grpcDataEndpoint=Idle(TEXT),
    httpDataEndpoint=Idle(TEXT),
    storageHelper=Idle(ANYTHING),
    builtInAdapter=Idle(ANYTHING),
    replicas=Idle(WHOLE),
)


def check_runtime(review: Review) -> Iterable[FieldError]:
    """Nobody may be left in doubt which runtime is meant."""
    rows = [row for row in review.spec.get("supportedModelFormats") or () if row.get("autoSelect")]
    for name in sorted({str(row.get("name")) for row in rows}):
        said = {row.get("priority") for row in rows if row.get("name") == name}
        if len(said) > 1:
            shown = ", ".join(sorted(map(str, said)))
            yield FieldError("spec.supportedModelFormats", name, f"has several priorities ({shown}); give it one")
    for row in rows:
        yield from within("spec.supportedModelFormats.priority", row.get("priority"), 1)
    yield from check_pods("spec", review.spec, _OF_RUNTIME)
    yield from _check_rivals(review, rows)
    yield from _check_workers(review)


def warn_runtime(review: Review) -> Iterable[str]:
    """One that is never chosen says so."""
    if review.spec.get("multiModel"):
        yield "spec.multiModel: models that share pods (ModelMesh) are not served here; no InferenceService is given this runtime"
    if review.spec.get("workerSpec"):
        yield "spec.workerSpec: models over several nodes are not served here; no InferenceService is given this runtime"


def check_pods(path: str, holder: Manifest, own: Collection[str]) -> Iterable[FieldError]:
    """What is not the holder's ``own`` is the spec of pods, as far as it is said here."""
    if not holder.get("containers"):
        return
    reading = Reading()
    spec = reading.read(path, POD_SPEC, {name: value for name, value in holder.items() if name not in own})
    yield from reading.errors or check_pod_spec(path, spec)


def _check_workers(review: Review) -> Iterable[FieldError]:
    workers = review.spec.get("workerSpec") or {}
    if len(workers.get("containers") or ()) > 1:
        yield FieldError("spec.workerSpec.containers", None, "must be one")
    if review.before("spec", "workerSpec") and not workers:
        yield FieldError("spec.workerSpec", None, "cannot be taken away")


def _check_rivals(review: Review, rows: Iterable[Manifest]) -> Iterable[FieldError]:
    """No other runtime of the scope claims the same version of a format, by the same protocol, at the same priority."""
    if review.spec.get("disabled"):
        return
    mine = {(row.get("name"), row.get("version"), row.get("priority")) for row in rows}
    spoken = set(review.spec.get("protocolVersions") or ())
    for key, other in sorted(review.world.of_kind(review.key.kind).items()):
        if key == review.key or key.namespace != review.key.namespace or other.spec.get("disabled"):
            continue
        theirs = {
            (row.get("name"), row.get("version"), row.get("priority"))
            for row in other.spec.get("supportedModelFormats") or ()
            if row.get("autoSelect")
        }
        if spoken & set(other.spec.get("protocolVersions") or ()):
            for name, version, priority in sorted(mine & theirs, key=str):
                rule = f"{name} {version} has priority {priority} in the runtime {key.name} already; give it another"
                yield FieldError("spec.supportedModelFormats", name, rule)
