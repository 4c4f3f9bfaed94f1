"""A login by a file that NATS's own tools made (``user.creds``): a signed description of the user, and the key that proves it.

Source: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/jwt; the seed's form is that of github.com/nats-io/nkeys:
two bytes of prefix, 32 of an Ed25519 key, two of a checksum, in base 32.
"""

import base64
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PARTS = re.compile(rb"-{3,}BEGIN ([A-Z ]+)-{3,}\s+(\S+)\s+-{3,}END \1-{3,}")
USER, SEED = b"NATS USER JWT", b"USER NKEY SEED"


class SignedLogin:
    """Reads ``file`` again at every connect, so that a change of it needs no restart."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def user(self) -> bytes:
        """Who it is, signed by the account. Raises ValueError."""
        return self._part(USER)

    def signature(self, nonce: str) -> bytes:
        """What proves it to a server that says ``nonce``. Raises ValueError."""
        seed = self._part(SEED)
        key = base64.b32decode(seed + b"=" * (-len(seed) % 8))[2:34]
        return base64.b64encode(Ed25519PrivateKey.from_private_bytes(key).sign(nonce.encode()))

    def _part(self, name: bytes) -> bytes:
        parts = dict(_PARTS.findall(self._file.read_bytes()))
        if name not in parts:
            raise ValueError(f"{self._file} has no part {name.decode()}")
        return bytes(parts[name])
