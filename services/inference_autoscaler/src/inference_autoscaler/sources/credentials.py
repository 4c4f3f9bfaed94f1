"""What lets us in at a source: what a TriggerAuthentication names, read from its Secrets when it is needed, and never told."""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inference_autoscaler.domain.sampling.source import Access
from inference_autoscaler.sources.answers import SourceFailed
from kube import Key, Object

Secret = Callable[[Key, str], Awaitable[Mapping[str, bytes] | None]]
"""The values of the Secret of a name that the object of a key names; None where it may not have them, or there is none."""

KEPT_SECONDS = 60.0
"""So long what was read is used before it is read again: a renewed token counts soon."""
_MODES = {
    "bearer": ("bearerToken",),
    "basic": ("username",),
    "tls": ("cert", "key"),
    "custom": ("customAuthHeader", "customAuthValue"),
}
"""What each mode needs."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request carries. Nobody prints it: its values are secret."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)


_NOTHING = Shown()


class Credentials:
    """Reads them, and keeps them for a while."""

    def __init__(self, find: Callable[[Key], Object | None], secret: Secret) -> None:
        self._find, self._secret = find, secret
        self._kept: dict[Access, tuple[float, Shown]] = {}

    async def shown(self, access: Access, *, anew: bool = False) -> Shown:
        """What ``access`` shows; read ``anew`` after it was refused. Raises SourceFailed where it cannot be had."""
        if access == Access():
            return _NOTHING
        now = asyncio.get_running_loop().time()
        until, kept = self._kept.get(access, (0.0, _NOTHING))
        if now < until and not anew:
            return kept
        found = await self._read(access)
        self._kept[access] = (now + KEPT_SECONDS, found)
        return found

    async def _read(self, access: Access) -> Shown:
        told = {} if access.authentication is None else await self._parameters(access.authentication)
        for mode in access.modes:
            if mode not in _MODES:
                raise SourceFailed(f"authModes: {mode}: only {', '.join(sorted(_MODES))} are shown")
            if missing := [name for name in _MODES[mode] if not told.get(name)]:
                raise SourceFailed(f"authModes: {mode}: its TriggerAuthentication gives no {missing[0]}")
        return Shown(_headers(access.modes, told), await asyncio.to_thread(_context, access, told))

    async def _parameters(self, key: Key) -> dict[str, str]:
        item = self._find(key)
        if item is None:
            raise SourceFailed(f"the {key.kind.partition('.')[0]} {key.name} is not there")
        if unknown := sorted(item.spec.keys() - {"secretTargetRef"}):
            raise SourceFailed(
                f"the {key.kind.partition('.')[0]} {key.name}: {unknown[0]} is not read, secretTargetRef alone is"
            )
        found: dict[str, str] = {}
        for reference in item.spec.get("secretTargetRef") or ():
            name, part = str(reference.get("name")), str(reference.get("key"))
            values = await self._secret(key, name)
            if values is None or part not in values:
                raise SourceFailed(f"the Secret {name} has no {part}, or is not there")
            found[str(reference.get("parameter"))] = values[part].decode(errors="replace")
        return found


def _headers(modes: tuple[str, ...], told: Mapping[str, str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    if "bearer" in modes:
        headers["Authorization"] = f"Bearer {told['bearerToken'].strip()}"
    if "basic" in modes:
        pair = f"{told['username']}:{told.get('password', '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    if "custom" in modes:
        headers[told["customAuthHeader"].strip()] = told["customAuthValue"].strip()
    if any(char in text for pair in headers.items() for text in pair for char in "\r\n\0"):
        raise SourceFailed("a credential has the end of a line in it")
    return headers


def _context(access: Access, told: Mapping[str, str]) -> ssl.SSLContext | None:
    """With which authority a server is checked, and which certificate it is shown; None for the usual. Raises SourceFailed."""
    if not (access.unverified or told.get("ca") or "tls" in access.modes):
        return None
    try:
        context = ssl.create_default_context(cadata=told.get("ca"))
        if access.unverified:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if "tls" in access.modes:
            with tempfile.TemporaryDirectory() as folder:
                chain, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
                chain.write_text(told["cert"])
                key.touch(mode=0o600)
                key.write_text(told["key"])
                context.load_cert_chain(chain, key)
    except (ssl.SSLError, OSError, ValueError):
        raise SourceFailed("its TriggerAuthentication gives a certificate, a key or a ca that cannot be read") from None
    return context
