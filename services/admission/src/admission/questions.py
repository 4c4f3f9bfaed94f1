"""Questions that another service owns the answer to: passed on over the bus, answered in words."""

import orjson

from bus import Bus, BusError
from kube import Key, Manifest, Object, Store
from tidegate import subjects

GROUP = "scheduling.k8s.io/group-name"
GROUP_KIND = "PodGroup.scheduling.volcano.sh"
ASKED = {"Pod": ("gang_scheduler",), GROUP_KIND: ("queue_manager", "gang_scheduler")}
"""Which services are asked about a kind; about jobs, the job controller and then about the job's group."""


class Questions:
    """Asks the owners and puts their answers together."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self._bus, self._store = bus, store

    async def explain(self, item: Object) -> tuple[list[str], Manifest]:
        """Lines for people and the whole as data: why ``item`` waits, or where it went."""
        details: Manifest = {}
        lines: list[str] = []
        for about in self._subjects(item):
            for service in ASKED.get(about.kind, ("job_controller",)):
                answer = await self._ask(service, about.key)
                details.setdefault(str(about.key), {})[service] = answer
                lines += _lines(about, service, answer)
        return lines, details

    def _subjects(self, item: Object) -> list[Object]:
        """The object itself, the groups that it owns or belongs to, and then its pods that wait."""
        found = [item]
        owned = self._store.owned_by(item.uid)
        found += [child for child in owned if child.kind == GROUP_KIND]
        if item.kind == "Pod" and item.annotations.get(GROUP):
            group = self._store.get(Key(GROUP_KIND, item.namespace, item.annotations[GROUP]))
            found += [group] if group is not None else []
        waiting = [child for child in owned if child.kind == "Pod" and not child.spec.get("nodeName")]
        return found + waiting[:3]

    async def _ask(self, service: str, key: Key) -> Manifest:
        question = orjson.dumps({"kind": key.kind, "namespace": key.namespace, "name": key.name})
        try:
            answer = await self._bus.request(subjects.question(service, "explain"), question, timeout=3.0)
        except BusError as error:
            return {"error": str(error)}
        content: Manifest = orjson.loads(answer)
        return content


def _lines(about: Object, service: str, answer: Manifest) -> list[str]:
    if "error" in answer:
        return [f"{about.key}: {service} does not answer just now"]
    verdict = answer.get("verdict") or answer.get("phase") or "Unknown"
    lines = [f"{about.key}: {verdict}" + (f" ({answer['rule']})" if answer.get("rule") else "")]
    if answer.get("message"):
        lines += [f"  {line}" for line in str(answer["message"]).splitlines()]
    need, have = answer.get("need") or {}, answer.get("have") or {}
    lines += [f"  needs {name} {amount}, has {have.get(name, 0)}" for name, amount in sorted(need.items())]
    for name in ("nearest_miss", "position", "estimate"):
        if answer.get(name):
            lines.append(f"  {name.replace('_', ' ')}: {answer[name]}")
    return lines
