"""Normalised cores: how much a core of a node does, by the annotation of the node.

Source: Koordinator's ``pkg/slo-controller/noderesource/plugins/cpunormalization`` and its runtime hook of that name.
"""

from collections.abc import Mapping

from resources import QuantityError, parse_milli

NORMALIZATION = "node.koordinator.sh/cpu-normalization-ratio"
PLAIN_MILLI = 1000
"""The core that all are measured by."""


def core_milli(annotations: Mapping[str, str]) -> int:
    """How much a core does, in thousandths of the one that all are measured by; never less, as nobody is given more for it."""
    text = annotations.get(NORMALIZATION)
    try:
        return max(parse_milli(text), PLAIN_MILLI) if text else PLAIN_MILLI
    except QuantityError:
        return PLAIN_MILLI
