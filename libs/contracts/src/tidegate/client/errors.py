"""What can go wrong between a program and the server. Every text is for people: it says what, where, and often what to do."""


class ClientError(Exception):
    """The server did not do what was asked, or gave no answer."""


class NotFound(ClientError):
    """There is no such object."""


class Refused(ClientError):
    """The request breaks a rule: a bad selector, an unknown kind, a field that is not allowed, or an object in the wrong state."""


class Denied(ClientError):
    """The server does not know the caller, or the caller may not do that."""


class Conflict(ClientError):
    """The object changed meanwhile: read it and try again."""


class Expired(ClientError):
    """The revision to go on from is no longer kept: list again, and watch from there."""


class TimedOut(ClientError):
    """No answer within the time given; whether it was done is unknown. Asking again is safe."""


class Unavailable(ClientError):
    """The server, or a part of Tidegate behind it, does not answer just now."""
