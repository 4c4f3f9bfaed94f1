"""Answers of services in lines for people: the verdict, why, in numbers, and what would help."""

import re
from collections.abc import Iterator

from kube import Manifest, Object
from kube.words import counted, verb

_GROUP_KIND = "PodGroup.scheduling.volcano.sh"
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LONG = re.compile(r"([0-9]{5,})(Ki|Mi)")
_SHOWN = ("used", "keptForOthers", "allocated", "capability", "deserved", "guarantee")


def answer_lines(about: Object, service: str, answer: Manifest) -> list[str]:
    """What ``service`` said about an object."""
    if "error" in answer:
        return [f"{about.key}: {silence(service, answer)}"]
    verdict = answer.get("verdict") or answer.get("phase") or "Unknown"
    lines = [f"{about.key}: {verdict}" + (f" ({answer['rule']})" if answer.get("rule") else "")]
    lines += [f"  {line}" for line in str(answer.get("message") or "").splitlines()]
    lines += [f"  {line}" for line in answer.get("lines") or ()]
    parts = (_gang, _needs, _miss, _queues, _quotas, _place, _held_room, _outlook, _why, _evicted, _ways)
    lines += [f"  {line}" for part in parts for line in part(answer)]
    lines += _held(about, str(answer.get("message") or ""))
    lines += [f"  {line}" for line in troubles(about)]
    return lines


def own_answer(about: Object) -> Manifest:
    """What an object says of itself, where there is nobody to ask: its phase, or else its newest condition that holds."""
    status = about.status
    conditions = status.get("conditions")
    told = [one for one in conditions if isinstance(one, dict)] if isinstance(conditions, list) else []
    newest = next((one for one in reversed(told) if one.get("status") == "True"), told[-1] if told else {})
    negation = "" if newest.get("status") == "True" or not newest else "not "
    verdict = str(status.get("phase") or negation + str(newest.get("type") or ""))
    lines = [str(one["message"]) for one in told if one.get("message")]
    if status.get("message") and str(status["message"]) not in lines:
        lines.append(str(status["message"]))
    if "pendingWorkloads" in status:
        counts = (f"{status.get(f'{name}Workloads', 0)} {name}" for name in ("pending", "reserving", "admitted"))
        lines.append(f"workloads: {', '.join(counts)}")
    if not verdict and not lines:
        return {}
    rule = "" if status.get("phase") else str(newest.get("reason") or "")
    return {"verdict": verdict, "rule": rule, "message": "\n".join(lines)}


def silence(service: str, answer: Manifest) -> str:
    """Why there is no answer: nobody is there, or who is there failed."""
    said = str(answer["error"])
    away = "nobody answers" in said or "no answer" in said
    return f"{service} does not answer just now" if away else f"{service} cannot answer: {said}"


def troubles(about: Object) -> list[str]:
    """What keeps the containers of a pod from running on its node, as the node says."""
    if about.kind != "Pod" or not about.spec.get("nodeName"):
        return []
    status = about.status
    lines = [f"{status['reason']}: {status.get('message') or 'no more is known'}"] if status.get("reason") else []
    for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = one.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("message"):
            lines.append(f"container {one.get('name')} waits ({waiting.get('reason')}): {waiting['message']}")
            ended = (one.get("lastState") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            before = "before, it " if waiting else f"container {one.get('name')} "
            message = f": {ended['message']}" if ended.get("message") else ""
            lines.append(f"{before}ended with exit code {ended['exitCode']}{message}")
    return lines


def _gang(answer: Manifest) -> Iterator[str]:
    gang = answer.get("gang") or {}
    if gang:
        needed = int(gang["needed"])
        who = f"{counted(needed, 'member')} that {verb(needed, 'starts', 'start')} together"
        yield f"of the {who} {gang['placed']} would find room now"
    if answer.get("membersAhead"):
        yield f"members of its gang that come before it: {answer['membersAhead']}"
    roles = gang.get("roles") or ()
    for role in roles if len(roles) > 1 else ():
        yield f"role {role['role']} of {role['group']}: at least {role['minimum']}, {role['members']} there"


def _needs(answer: Manifest) -> Iterator[str]:
    found = answer.get("resources") or ()
    for item in [item for item in found if item.get("short")] or found:
        where = f" ({item['node']})" if item.get("node") else ""
        yield (
            f"{item['resource']}: a pod needs {readable(item['need'])}, the most on one node is "
            f"{readable(item['mostOnOneNode'])}{where}, free on all together {readable(item['freeTogether'])}"
        )
    if not answer.get("resources"):
        have = answer.get("have") or {}
        for name, amount in sorted((answer.get("need") or {}).items() if have else ()):
            yield f"{name}: needs {readable(amount)}, the most on one node is {readable(have.get(name, '0'))}"
    if answer.get("minimum"):
        yield f"its minimum needs {_amounts(answer['minimum'])}"


def _miss(answer: Manifest) -> Iterator[str]:
    miss = answer.get("nearestMiss")
    if miss:
        yield f"nearest miss: {miss['message'] if isinstance(miss, dict) else miss}"
    if answer.get("nearestDomain"):
        yield f"nearest domain: {answer['nearestDomain']['message']}"


def _queues(answer: Manifest) -> Iterator[str]:
    for item in answer.get("queues") or ():
        parts = [f"{name} {_amounts(item[name])}" for name in _SHOWN if item.get(name)]
        state = f" is {item['state']}" if item.get("state") else ""
        yield f"queue {item['queue']}{state}" + (f": {'; '.join(parts)}" if parts else "")
    for item in answer.get("guaranteedTo") or ():
        yield f"{_amounts(item['unused'])} is kept for queue {item['queue']}, to which it is guaranteed"
    for user in answer.get("usedBy") or ():
        yield f"{user['group']} uses {_amounts(user['used'])} of it"


def _quotas(answer: Manifest) -> Iterator[str]:
    for level in answer.get("quotaOf") or ():
        for item in level["quota"]:
            borrowed = f", {item['borrowed']} of it borrowed" if item["borrowed"] != "0" else ""
            yield (
                f"{level['kind']} {level['name']}: {item['resource']} of flavor {item['flavor']}: quota {readable(item['quota'])}, "
                f"used {readable(item['used'])}{borrowed}, left {readable(item['left'])}"
            )
    for holder in answer.get("holders") or ():
        yield f"{holder['workload']} holds {_amounts(holder['used'])} in ClusterQueue {holder['queue']}"
    for item in answer.get("quotas") or ():
        yield f"quota {item['quota']}: at most {_amounts(item['hard'])}"


def _place(answer: Manifest) -> Iterator[str]:
    if answer.get("position"):
        many = answer.get("waitingInQueue") or answer.get("waitingAtGate")
        ahead = ", ".join(answer.get("ahead") or ())
        yield (
            f"position in the queue: {answer['position']}"
            + (f" of {many}" if many else "")
            + (f", behind {ahead}" if ahead else "")
        )


def _held_room(answer: Manifest) -> Iterator[str]:
    for item in answer.get("heldRoom") or ():
        until = f" until {item['until']}" if item.get("until") else ""
        nodes = f" on {', '.join(item['nodes'][:5])}" if item.get("nodes") else ""
        yield f"room is kept for {' and '.join(item['for'])}{nodes}{until} ({item['basis']})"


def _outlook(answer: Manifest) -> Iterator[str]:
    if answer.get("estimate"):
        yield f"estimate: {answer['estimate']}"
    if answer.get("outlook"):
        yield f"outlook: {answer['outlook']}"


def _why(answer: Manifest) -> Iterator[str]:
    why = answer.get("why") or {}
    if why.get("parts"):
        parts = ", ".join(f"{name} {points}" for name, points in why["parts"].items())
        yield f"why there ({why.get('placement')}): {parts}" + (f"; in {why['place']}" if why.get("place") else "")


def _evicted(answer: Manifest) -> Iterator[str]:
    before = answer.get("evictedBefore")
    if before:
        yield f"a pod of this name was evicted before ({before.get('reason')}): {before.get('message')}"


def _ways(answer: Manifest) -> Iterator[str]:
    for way in answer.get("waysOut") or ():
        yield f"way out: {way}"


def _held(about: Object, told: str) -> list[str]:
    """Why the queue has not let a group in, as the group's own conditions say, where that was not told yet."""
    conditions = about.status.get("conditions") or () if about.kind == _GROUP_KIND else ()
    held = (str(c["message"]) for c in conditions if c.get("type") == "Admitted" and c.get("status") == "False")
    return [f"  {message}" for message in held if message != told]


def _amounts(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name} {readable(amount)}" for name, amount in sorted(amounts.items()))


def readable(amount: object) -> str:
    """``24684084Ki`` as ``23.54Gi``, rounded down; what is short already stays as it is. Data has the exact numbers."""
    found = _LONG.fullmatch(str(amount))
    if found is None:
        return str(amount)
    hundredths, unit = int(found[1]) * 100, _UNITS.index(found[2])
    while hundredths >= 102_400 and unit < len(_UNITS) - 1:
        hundredths, unit = hundredths // 1024, unit + 1
    return f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".") + _UNITS[unit]
