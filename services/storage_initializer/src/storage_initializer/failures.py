"""What can go wrong with a fetch: for good, or for now."""


class FetchError(Exception):
    """The model cannot be fetched; to try again changes nothing until somebody changes something."""


class Interrupted(Exception):
    """A fetch broke off for a reason that may pass: what came so far stays, and it goes on from there."""
