"""Keeps an API server told of our webhooks: of the certificate that they are served with, and of what is to be asked about."""

import asyncio
import logging
from dataclasses import replace

from admission.domain.colocation_profile import KIND as PROFILE
from admission.view import View
from admission.webhooks.certificate_keeper import PAUSE, CertificateKeeper, NotKept, taken, until_set
from admission.webhooks.registration import Asked, configurations
from apiserver import Api, ApiRequest, Unreachable
from kube import Manifest

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0
"""How often it is looked whether somebody else has changed what the API server was told."""
NOT_FOUND = 404


class Registrar:
    """Tells ``api`` of what is ``asked`` about; the profiles are those of the facts."""

    def __init__(self, api: Api, view: View, keeper: CertificateKeeper, asked: Asked) -> None:
        self._api, self._view, self._keeper, self._asked = api, view, keeper, asked
        self._again = asyncio.Event()
        keeper.renewed.append(lambda _: self._again.set())
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Tell again whenever something of it has changed, for ever."""
        await self._view.ready.wait()
        await self._keeper.ready.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_profiles(), name="profiles")
            while True:
                self._again.clear()
                try:
                    await self._register()
                    self.ready.set()
                    pause = LOOK_SECONDS
                except (Unreachable, NotKept) as error:
                    log.warning("webhooks_not_registered", extra={"detail": str(error)})
                    pause = PAUSE
                await until_set(self._again, pause)

    async def _follow_profiles(self) -> None:
        while True:
            await self._view.until_changed(PROFILE, self._view.revision)
            self._again.set()

    async def _register(self) -> None:
        profiles = self._view.store.of_kind(PROFILE).values()
        asked = replace(self._asked, profiles=[item.spec for item in sorted(profiles, key=lambda item: item.name)])
        for plural, manifest in configurations(asked, self._keeper.serving.authority).items():
            await self._tell(f"/apis/admissionregistration.k8s.io/v1/{plural}", manifest)

    async def _tell(self, path: str, wanted: Manifest) -> None:
        found = await self._api.get(f"{path}/{wanted['metadata']['name']}")
        if found.code == NOT_FOUND:
            taken(await self._api.send(ApiRequest("POST", path, wanted)))
            return
        taken(found)
        if not _holds(found.body, wanted):
            metadata = _laid_over(found.body["metadata"], wanted["metadata"])
            body = {**wanted, "metadata": metadata, "webhooks": _with_bundles(wanted, found.body)}
            taken(await self._api.send(ApiRequest("PUT", f"{path}/{metadata['name']}", body)))


def _laid_over(there: Manifest, wanted: Manifest) -> Manifest:
    """The metadata; labels and annotations of who else cares for the object, Helm for instance, stay."""
    marks = {part: {**(there.get(part) or {}), **(wanted.get(part) or {})} for part in ("labels", "annotations")}
    return {**there, **wanted, **marks}


def _with_bundles(wanted: Manifest, there: Manifest) -> list[Manifest]:
    """The webhooks; where we do not say whom to trust, whoever does has said it, and it stays so."""
    bundles = [
        one["clientConfig"]["caBundle"] for one in there.get("webhooks") or () if "caBundle" in one["clientConfig"]
    ]
    kept = {"caBundle": bundles[0]} if bundles else {}
    return [{**one, "clientConfig": {**kept, **one["clientConfig"]}} for one in wanted["webhooks"]]


def _holds(there: object, wanted: object) -> bool:
    """Whether all that is ``wanted`` is so; of mappings an API server may have filled in more."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            (name in there and _holds(there[name], part)) or (not part and name not in there)
            for name, part in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(there, list) and len(there) == len(wanted) and all(map(_holds, there, wanted))
    return there == wanted
