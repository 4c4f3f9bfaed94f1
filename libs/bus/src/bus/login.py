"""Who a process is to a NATS server: what the client is told when it connects."""

from pathlib import Path
from typing import Any

USER, PASSWORD, SIGNED = "username", "password", "user.creds"
"""The files of a credentials folder: those of a mounted Secret of the type ``kubernetes.io/basic-auth``, or NATS's own."""


class NoCredentials(Exception):
    """The folder does not hold what a login needs; the text says what."""


def login(token: str | None, folder: Path | None) -> dict[str, Any]:
    """Options of the client: a token, or what is in ``folder``. Without both the server is to take anybody.

    What is in the folder is read again at every connect, so that a change of theirs needs no restart. Raises NoCredentials.
    """
    if folder is None:
        return {"token": token}
    signed = folder / SIGNED
    if signed.is_file():
        # Few have one, and it takes a library.
        from bus.signed_login import SignedLogin

        by_file = SignedLogin(signed)
        return {"user_jwt_cb": by_file.user, "signature_cb": by_file.signature}
    missing = [name for name in (USER, PASSWORD) if not (folder / name).is_file()]
    if missing:
        raise NoCredentials(f"{folder} holds neither {SIGNED} nor {' and '.join(missing)}")
    return {"user": lambda: _content(folder / USER), "password": lambda: _content(folder / PASSWORD)}


def _content(file: Path) -> str:
    return file.read_text().strip()
