"""Whether best effort is what an online pod waits for: found out by holding it, and by letting it go again.

Who is disturbed for two rounds in a row is a suspect, and best effort is held below what it uses now. A suspect that waits as long
as before after some rounds waits for something else. One that does not is still no proof, since most of what happens is over soon:
best effort is let go after a while, and where nobody is disturbed at once it was not its doing either. In both cases that much is
usual for its workload for some minutes. Where it comes back, best effort is held for twice as long as the last time.

What work costs is measured well, and is told at once by the difference between best effort and next to none: there one round each
is enough. Where it falls, best effort gets no more than that: what takes caches does so however little of the time it runs, and
those that serve meanwhile are the slowest of all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from node_agent.domain.colocation.disturbances import COSTS, Disturbance, Key

NEXT_TO_NONE = 0
"""Milli-cores that best effort is held to where it makes work cost more: the least that its quota may be."""
HOLD_PERCENT = 70
"""Of what best effort uses: what it is held to when it disturbs."""
CONFIRMED_ROUNDS = 2
"""So many rounds in a row a pod waits before anything follows: what is over by then is not helped by holding anybody."""
PROOF_ROUNDS = 3
"""So many rounds best effort is held before it is asked whether that helps, and each time that it did until it is asked again."""
HELPED_PERCENT = 75
"""Of what a pod waited when it was asked last: at more than that, holding best effort has not helped."""
HELD_ROUNDS, MOST_HELD_ROUNDS = 10, 80
"""How long best effort is held where that helps: at first, and at most."""
RELAPSE_ROUNDS = 3
"""Who is disturbed by best effort is so again within so many rounds after it was let go."""
ACQUITTED_MS = 300_000


class Suspicion(NamedTuple):
    """Disturbed for ``rounds`` in a row, by ``stall`` at least."""

    stall: int
    rounds: int


class Acquittal(NamedTuple):
    """Until then a pod waits for ``stall`` without best effort's doing."""

    stall: int
    until: int


@dataclass(frozen=True, slots=True)
class Trial:
    """``held_milli`` is what best effort is held to for the sake of the ``suspects``, by what they waited for at first (None: nothing)."""

    held_milli: int | None = None
    rounds: int = 0
    """Since best effort was held, or let go."""
    held_rounds: int = 0
    """For how long best effort is held this time, or was the last time."""
    suspects: Mapping[Key, int] = field(default_factory=dict)
    suspected: Mapping[Key, Suspicion] = field(default_factory=dict)
    acquitted: Mapping[Key, Acquittal] = field(default_factory=dict)


def tried(before: Trial, seen: Sequence[Disturbance], felt: Mapping[Key, int], used: int, now: int) -> Trial:
    """The trial after a round in which all of ``seen`` were disturbed, while best effort ``used`` so much (milli-cores).

    ``felt`` is what all pods did in it, of each workload the one that felt it most.
    """
    by_key = {one.key: one for one in sorted(seen, key=lambda one: one.stall)}
    trial = replace(
        before,
        rounds=before.rounds + 1,
        suspected={key: _suspicion(one, before.suspected.get(key)) for key, one in by_key.items()},
        acquitted={key: one for key, one in before.acquitted.items() if now < one.until <= now + ACQUITTED_MS},
    )
    if trial.held_milli is None:
        return _free(trial, used, now)
    return _held(trial, trial.held_milli, by_key, felt, used, now)


def _suspicion(one: Disturbance, before: Suspicion | None) -> Suspicion:
    """The least of what was waited counts: more may have been chance."""
    return Suspicion(min(before.stall, one.stall), before.rounds + 1) if before else Suspicion(one.stall, 1)


def _free(trial: Trial, used: int, now: int) -> Trial:
    found = {
        key: one.stall for key, one in trial.suspected.items() if one.rounds >= CONFIRMED_ROUNDS or key[1] in COSTS
    }
    if found:
        relapsed = bool(found.keys() & trial.suspects.keys())
        held_rounds = min(2 * trial.held_rounds, MOST_HELD_ROUNDS) if relapsed else HELD_ROUNDS
        held_milli = NEXT_TO_NONE if _costs(found) else _less(used)
        return replace(trial, held_milli=held_milli, rounds=0, held_rounds=held_rounds, suspects=found)
    if trial.suspects and trial.rounds >= RELAPSE_ROUNDS:
        innocent = {key: stall for key, stall in trial.suspects.items() if key[1] not in COSTS}
        return replace(_acquitted(trial, innocent, now), suspects={})
    return trial


def _held(
    trial: Trial,
    held_milli: int,
    seen: Mapping[Key, Disturbance],
    felt: Mapping[Key, int],
    used: int,
    now: int,
) -> Trial:
    if trial.rounds == 1 and held_milli == NEXT_TO_NONE:
        trial = _without_best_effort(trial, felt, now)
    if trial.rounds % PROOF_ROUNDS == 0:
        still = {key: one.stall for key, one in seen.items() if key in trial.suspects and key[1] not in COSTS}
        innocent = {key: stall for key, stall in still.items() if stall * 100 > trial.suspects[key] * HELPED_PERCENT}
        trial = _without(replace(trial, suspects={**trial.suspects, **still}), innocent, now)
    if held_milli == NEXT_TO_NONE and not trial.suspects.keys() & felt.keys():  # nobody works who could be disturbed
        trial = replace(trial, suspects={})
    if not trial.suspects or trial.rounds >= trial.held_rounds:
        return replace(trial, held_milli=None, rounds=0, suspected={})
    still_seen = trial.suspects.keys() & seen.keys()
    return replace(trial, held_milli=_less(min(used, held_milli))) if still_seen else trial


def _costs(keys: Collection[Key]) -> bool:
    return any(kind in COSTS for _, kind in keys)


def _without_best_effort(trial: Trial, felt: Mapping[Key, int], now: int) -> Trial:
    """Whose work costs nearly as much is innocent; and what all wait for now they wait for by themselves."""
    costs = {key: cost for key, cost in felt.items() if key in trial.suspects and key[1] in COSTS}
    innocent = {key: cost for key, cost in costs.items() if trial.suspects[key] * 100 <= cost * COSTS[key[1]]}
    waits = {key: stall for key, stall in felt.items() if key[1] not in COSTS and key not in trial.suspects}
    return _without(_acquitted(trial, waits, now), innocent, now)


def _without(trial: Trial, innocent: Mapping[Key, int], now: int) -> Trial:
    suspects = {key: stall for key, stall in trial.suspects.items() if key not in innocent}
    return replace(_acquitted(trial, innocent, now), suspects=suspects)


def _acquitted(trial: Trial, innocent: Mapping[Key, int], now: int) -> Trial:
    more = {key: Acquittal(stall, now + ACQUITTED_MS) for key, stall in innocent.items()}
    return replace(trial, acquitted={**trial.acquitted, **more})


def _less(milli: int) -> int:
    return milli * HOLD_PERCENT // 100
