"""Tells an API server by which authority this server of metrics is trusted, in the APIServices that the chart made."""

import asyncio
import base64
import logging
from collections.abc import Sequence

from admission.domain.metric_values import CUSTOM, EXTERNAL, VERSIONS
from admission.webhooks.certificate_keeper import PAUSE, CertificateKeeper, NotKept, taken, until_set
from apiserver import Api, ApiRequest, Unreachable
from apiserver.api import MERGE_PATCH

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
GROUPS = {"custom": CUSTOM, "external": EXTERNAL}


def services_of(names: Sequence[str]) -> list[str]:
    """The names of the APIServices of ``custom`` and ``external``."""
    return [f"{version}.{GROUPS[name]}" for name in names for version in VERSIONS[GROUPS[name]]]


class MetricsRegistrar:
    """Keeps the ``caBundle`` of the APIServices ``names`` what it has to be."""

    def __init__(self, api: Api, keeper: CertificateKeeper, names: Sequence[str]) -> None:
        self._api, self._keeper, self._names = api, keeper, names
        self._again = asyncio.Event()
        keeper.renewed.append(lambda _: self._again.set())

    async def run(self) -> None:
        """Look again and again, for ever."""
        await self._keeper.ready.wait()
        while True:
            self._again.clear()
            pause = LOOK_SECONDS
            try:
                for name in self._names:
                    await self._tell(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")
            except (Unreachable, NotKept) as error:
                log.warning("metrics_not_registered", extra={"detail": str(error)})
                pause = PAUSE
            await until_set(self._again, pause)

    async def _tell(self, path: str) -> None:
        authority = self._keeper.serving.authority
        if authority is None:  # cert-manager says it
            return
        found = await self._api.get(path)
        taken(found)
        bundle = base64.b64encode(authority).decode()
        if found.body["spec"].get("caBundle") != bundle:
            patch = {"spec": {"caBundle": bundle, "insecureSkipTLSVerify": False}}
            taken(await self._api.send(ApiRequest("PATCH", path, patch, content=MERGE_PATCH)))
