"""The older way to say where a queue stands: the hierarchy annotations of Volcano."""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.queue_choice import KIND, ROOT
from admission.domain.world import Review

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
ROOT_PREFIX = "root/"


def default_hierarchy(review: Review) -> None:
    """A path that does not start at the root is put under it, with weight 1."""
    annotations = review.metadata.get("annotations") or {}
    path = annotations.get(PATH)
    if path and path != "root" and not path.startswith(ROOT_PREFIX):
        annotations[PATH] = ROOT_PREFIX + path
        annotations[WEIGHTS] = "1/" + annotations.get(WEIGHTS, "")


def check_hierarchy(review: Review) -> Iterable[FieldError]:
    """As many weights as steps of the path, each a number above zero, and no path inside that of another queue."""
    annotations = review.metadata.get("annotations") or {}
    path, weights = annotations.get(PATH), annotations.get(WEIGHTS, "")
    if not path:
        return
    where = f'metadata.annotations["{WEIGHTS}"]'
    if len(path.split("/")) != len(weights.split("/")):
        yield FieldError(where, weights, f"must have as many parts as {PATH}, which is {path}")
    for weight in weights.split("/"):
        if not _is_positive(weight):
            yield FieldError(where, weight, "must be a number above 0")
    for key, queue in review.world.of_kind(KIND).items():
        other = queue.annotations.get(PATH, "")
        if key != review.key and other and (other.startswith(path + "/") or path.startswith(other + "/")):
            rule = f"queue {key.name} is at {other}; one path may not lead through another queue"
            yield FieldError(f'metadata.annotations["{PATH}"]', path, rule)


def warn_hierarchy(review: Review) -> Iterable[str]:
    """A queue that names its parent hangs there, whatever its path says."""
    path, parent = (review.metadata.get("annotations") or {}).get(PATH), review.spec.get("parent") or ROOT
    if path and parent != ROOT:
        yield f"annotation {PATH} has no effect: the queue hangs from its spec.parent, {parent}"


def _is_positive(text: str) -> bool:
    whole, _, fraction = text.partition(".")
    digits = whole + fraction
    return digits.isdigit() and digits.isascii() and int(digits) > 0
