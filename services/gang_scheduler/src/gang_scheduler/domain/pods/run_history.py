"""How long work of one origin ran before: the runs of a cron job, a job handed in again under its name.

Kept is one small number for each origin, the length of its runs in steps of a fifth. A longer run raises it at once, a
shorter one lowers it by half the difference, so that an estimate is rather too long than too short. Origins that have not
been heard of for the longest time are forgotten first. The state changes only when an estimate does, and outlives a restart
together with the claims. Source of the idea: Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions".
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gang_scheduler.domain.pods.pod_record import TASK_SPEC
from kube import Object, parse_time

_STEPS = 4
"""So many steps to a doubling."""
_MOST = 512
"""So many origins are remembered."""
_RUN = re.compile(r"-[0-9]{5,}$|-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
"""What is at the end of the name of one run of many: a time, or a uid."""


@dataclass(slots=True)
class RunHistory:
    """``steps`` is by origin, the least recent first."""

    steps: dict[str, int] = field(default_factory=dict)

    def note(self, pod: Object, now: int) -> None:
        """The pod has come to a good end."""
        started = _time(pod.status.get("startTime"))
        ended = max((_ended(status) for status in pod.status.get("containerStatuses") or ()), default=0) or now
        if not started or ended < started:
            return
        origin, step = origin_of(pod), step_of(ended - started)
        known = self.steps.pop(origin, step)
        self.steps[origin] = step if step >= known else known - (known - step + 1) // 2
        if len(self.steps) > _MOST:
            del self.steps[next(iter(self.steps))]

    def length_ms(self, pod: Object) -> int | None:
        """How long the pod is going to run by what ran before; None where nothing is known."""
        step = self.steps.get(origin_of(pod)) if self.steps else None
        return None if step is None else length_of(step)

    def dump(self) -> list[list[str | int]]:
        """As plain data, in its order."""
        return [[origin, step] for origin, step in self.steps.items()]

    def load(self, data: Iterable[Iterable[str | int]]) -> None:
        """What ``dump`` wrote."""
        self.steps = {str(origin): int(step) for origin, step in data}


def origin_of(pod: Object) -> str:
    """Namespace, kind and name of what keeps making such pods, and the role of the pod in it."""
    owner = pod.controller
    kind, name = (str(owner.get("kind")), str(owner.get("name"))) if owner is not None else ("Pod", pod.name)
    role = pod.annotations.get(TASK_SPEC) or pod.labels.get(TASK_SPEC) or ""
    return f"{pod.namespace}/{kind}/{_stem(name)}/{role}"


@lru_cache(maxsize=4096)
def _stem(name: str) -> str:
    return _RUN.sub("", name)


def step_of(length_ms: int) -> int:
    """The smallest step that is at least as long."""
    step = max(0, (max(1, length_ms) - 1).bit_length() * _STEPS - _STEPS)
    while length_of(step) < length_ms:
        step += 1
    return step


def length_of(step: int) -> int:
    """The length of a step in milliseconds: 2^(step/4), rounded up."""
    whole, part = divmod(step, _STEPS)
    return -(-(_ROOTS[part] << whole) >> 32)


_ROOTS = (1 << 32, 5107605667, 6074001000, 7223248213)
"""2^(i/4) in 2⁻³²."""


def _ended(status: Mapping[str, object]) -> int:
    state = status.get("state")
    terminated = state.get("terminated") if isinstance(state, dict) else None
    return _time(terminated.get("finishedAt")) if isinstance(terminated, dict) else 0


def _time(text: object) -> int:
    try:
        return parse_time(str(text)) if text else 0
    except ValueError:
        return 0
