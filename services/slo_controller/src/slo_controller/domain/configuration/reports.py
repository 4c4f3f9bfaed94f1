"""Telling that the ConfigMap holds what makes no sense: as an event, and in an annotation as long as it is so."""

from collections.abc import Set as AbstractSet

from kube import Decision, Key, Mutation, Object, Verb
from slo_controller.domain.configuration.config_map import Configuration

REFUSED, MENDED = "SloConfigRefused", "SloConfigMended"
MARK = "tidegate.dev/refused"
"""The annotation of the ConfigMap that says what of it does not count, and why."""


def report(configuration: Configuration, config_map: Object | None, in_flight: AbstractSet[Key]) -> list[Decision]:
    """What is to be told of ``config_map`` that it does not say yet."""
    if config_map is None or config_map.deleting or config_map.key in in_flight:
        return []
    told = config_map.annotations.get(MARK)
    words = "; ".join(
        f"{key}: {why}{_in_force(configuration, key)}" for key, why in sorted(configuration.refused.items())
    )
    if words == (told or ""):
        return []
    mutation = Mutation(
        Verb.PATCH, config_map.key, config_map.uid, patch={"metadata": {"annotations": {MARK: words or None}}}
    )
    if words:
        return [Decision(REFUSED, config_map.key, config_map.uid, "ConfigInvalid", words, (mutation,))]
    mended = "all of it makes sense, and is in force"
    return [Decision(MENDED, config_map.key, config_map.uid, "ConfigValid", mended, (mutation,))]


def _in_force(configuration: Configuration, key: str) -> str:
    last = "the content before it" if key in configuration.accepted else "the default"
    return f" ({last} stays in force)"
