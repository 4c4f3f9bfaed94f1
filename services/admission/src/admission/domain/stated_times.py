"""Times in annotations: how long something runs, may wait, or is spared.

The estimate of a run time is Tidegate's own: what is no duration is refused. The others are peers', who take such an object in
and go by no time at all; so it is let in, and whoever gives it is told.
"""

from collections.abc import Iterable

from admission.domain.errors import FieldError
from admission.domain.job_policies import check_duration
from admission.domain.world import Review
from kube.running_estimates import ESTIMATE

PEERS = (
    "sla-waiting-time",
    "volcano.sh/sla-waiting-time",
    "volcano.sh/cooldown-time",
    "gang.scheduling.koordinator.sh/waiting-time",
)


def check_estimate(review: Review) -> Iterable[FieldError]:
    """An expected run time is a duration, on the object and on the pods of its template."""
    spec = review.manifest.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    below = template.get("metadata") if isinstance(template, dict) else None
    for path, metadata in (("metadata", review.metadata), ("spec.template.metadata", below)):
        text = ((metadata or {}).get("annotations") or {}).get(ESTIMATE)
        if text is not None:
            yield from check_duration(f'{path}.annotations["{ESTIMATE}"]', text)


def warn_times(review: Review) -> Iterable[str]:
    """Which times are none, and so have no effect."""
    annotations = review.metadata.get("annotations") or {}
    for name in PEERS:
        if name in annotations:
            for error in check_duration(f'metadata.annotations["{name}"]', annotations[name]):
                yield f"{error}; it has no effect"
