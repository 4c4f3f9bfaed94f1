"""Whether best effort is what an online pod waits for: found out by holding it, and by letting it go again.

Who is disturbed for two rounds in a row is a suspect, and best effort is held below what it uses now. A suspect that waits as long
as before after some rounds waits for something else. One that does not is still no proof, since most of what happens is over soon:
best effort is let go after a while, and where nobody is disturbed at once it was not its doing either. In both cases that much is
usual for the pod for some minutes. Where it comes back, best effort is held for twice as long as the last time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from node_agent.domain.colocation.disturbances import Disturbance, Key

HOLD_PERCENT = 70
"""Of what best effort uses: what it is held to when it disturbs."""
CONFIRMED_ROUNDS = 2
"""So many rounds in a row a pod is disturbed before anything follows: what is over by then is not helped by holding anybody."""
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


def tried(before: Trial, seen: Sequence[Disturbance], used: int, now: int) -> Trial:
    """The trial after a round in which all of ``seen`` were disturbed, while best effort ``used`` so much (milli-cores)."""
    by_key = {one.key: one for one in seen}
    trial = replace(
        before,
        rounds=before.rounds + 1,
        suspected={key: _suspicion(one, before.suspected.get(key)) for key, one in by_key.items()},
        acquitted={key: one for key, one in before.acquitted.items() if now < one.until <= now + ACQUITTED_MS},
    )
    if trial.held_milli is None:
        return _free(trial, used, now)
    return _held(trial, trial.held_milli, by_key, used, now)


def _suspicion(one: Disturbance, before: Suspicion | None) -> Suspicion:
    """The least of what was waited counts: more may have been chance."""
    return Suspicion(min(before.stall, one.stall), before.rounds + 1) if before else Suspicion(one.stall, 1)


def _free(trial: Trial, used: int, now: int) -> Trial:
    found = {key: one.stall for key, one in trial.suspected.items() if one.rounds >= CONFIRMED_ROUNDS}
    if found:
        relapsed = bool(found.keys() & trial.suspects.keys())
        held_rounds = min(2 * trial.held_rounds, MOST_HELD_ROUNDS) if relapsed else HELD_ROUNDS
        return replace(trial, held_milli=_less(used), rounds=0, held_rounds=held_rounds, suspects=found)
    if trial.suspects and trial.rounds >= RELAPSE_ROUNDS:
        return replace(_acquitted(trial, trial.suspects, now), suspects={})
    return trial


def _held(trial: Trial, held_milli: int, seen: Mapping[Key, Disturbance], used: int, now: int) -> Trial:
    still = {key: one for key, one in seen.items() if key in trial.suspects}
    if trial.rounds % PROOF_ROUNDS == 0:
        innocent = {key: one.stall for key, one in still.items() if not _helped(one, trial.suspects[key])}
        rest = {**trial.suspects, **{key: one.stall for key, one in still.items()}}
        trial = replace(
            _acquitted(trial, innocent, now),
            suspects={key: stall for key, stall in rest.items() if key not in innocent},
        )
        still = {key: one for key, one in still.items() if key not in innocent}
    if not trial.suspects or trial.rounds >= trial.held_rounds:
        return replace(trial, held_milli=None, rounds=0, suspected={})
    return replace(trial, held_milli=_less(min(used, held_milli))) if still else trial


def _helped(one: Disturbance, first: int) -> bool:
    # No work is done without cycles: what holding can take away is what is beyond the usual.
    base = one.usual if one.kind == "cpi" else 0
    return (one.stall - base) * 100 <= (first - base) * HELPED_PERCENT


def _acquitted(trial: Trial, innocent: Mapping[Key, int], now: int) -> Trial:
    more = {key: Acquittal(stall, now + ACQUITTED_MS) for key, stall in innocent.items()}
    return replace(trial, acquitted={**trial.acquitted, **more})


def _less(milli: int) -> int:
    return milli * HOLD_PERCENT // 100
