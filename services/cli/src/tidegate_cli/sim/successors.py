"""What would be done by services that start anew now: nothing, where everything is settled.

A successor is made of the facts, of what the service last heard and of its private state. If it would change any object,
its predecessor has left something undone (work that fits and is entitled still waits), or has built up a state that the
facts do not give. What it would only put into other words is no change: whoever waits is told anew when something that
concerns it changes, and not whenever a number in its message does.
"""

from collections.abc import Mapping

from chassis import Decider
from chassis.core import Reading
from chassis.term import Term
from kube import Decision, Event, Manifest, Mutation, Store, Verb, merge


def undone(deciders: Mapping[str, Decider], now: int) -> list[str]:
    """What successors of the ``deciders`` would do at ``now``, in words. Those that wait for outcomes are passed over."""
    return [
        f"{name}: a successor would decide {decision.name} of {decision.subject}: {decision.message}"
        for name, decider in sorted(deciders.items())
        if decider.term is not None and not decider.term.intake.in_flight
        for decision in _of_successor(decider, decider.term, now)
        if any(_acts(mutation, decider.term.intake.fold.store) for mutation in decision.mutations)
    ]


def _of_successor(decider: Decider, term: Term, now: int) -> list[Decision]:
    core = decider.make_core()
    term.intake.private.give(core)
    if isinstance(core, Reading):
        core.read_from(term.intake.fold.store)
    core.fold([Event(None, item) for item in term.intake.fold.store.objects.values()], term.intake.fold.at_ms)
    for (service, _), decision in term.intake.told.items():
        core.hear(service, decision)
    return core.decide(now, frozenset())


def _acts(mutation: Mutation, store: Store) -> bool:
    """Whether it changes more than what people are told."""
    item = store.get(mutation.key)
    if mutation.verb is not Verb.STATUS or item is None:
        return True
    return _stripped(merge(item.status, mutation.patch or {})) != _stripped(item.status)


def _stripped(status: Manifest) -> Manifest:
    return {name: value for name, value in status.items() if name != "conditions"}
