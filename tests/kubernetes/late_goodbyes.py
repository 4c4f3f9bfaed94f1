"""Connections over TLS end a moment after their test; what they say then must not be taken for another test's."""

import gc
import warnings


def collect_quietly() -> None:
    """Let go of what a test left to the garbage, without a word about connections that were still closing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
