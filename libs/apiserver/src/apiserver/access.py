"""How to reach an API server: address, certificates and credentials, from a kubeconfig file or from inside a pod.

The file, its plug-ins for credentials and the renewal of tokens are read by the official client; requests go through our own
session, which costs a fraction of the official client's models.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config


class NoAccess(Exception):
    """There is nothing that says how to reach a cluster, or it cannot be read."""


@dataclass(slots=True)
class Access:
    """An API server and who we are to it: by ``kubeconfig``, or as the pod in which this runs when that is None."""

    configuration: Configuration
    kubeconfig: Path | None
    context: str

    @property
    def host(self) -> str:
        """The address, without a slash at its end."""
        return str(self.configuration.host).rstrip("/")

    def ssl_context(self) -> ssl.SSLContext | None:
        """What connections are checked with; None for an address without TLS."""
        if not self.host.startswith("https://"):
            return None
        context = ssl.create_default_context(cafile=self.configuration.ssl_ca_cert)
        if not self.configuration.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.configuration.cert_file:
            context.load_cert_chain(self.configuration.cert_file, self.configuration.key_file)
        return context

    async def headers(self) -> dict[str, str]:
        """The credentials for the next request. A pod's token is read again each minute."""
        token = await self.configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": str(token)} if token else {}

    async def renew(self) -> None:
        """The credentials were refused: get new ones from where these came from. Raises NoAccess."""
        self.configuration = (await load(self.kubeconfig, self.context)).configuration


async def load(kubeconfig: Path | None, context: str = "") -> Access:
    """The access that ``kubeconfig`` describes, or that of the pod in which this runs when it is None. Raises NoAccess."""
    configuration = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(configuration)
        else:
            await load_kube_config(str(kubeconfig), context or None, client_configuration=configuration)
    except ConfigException as error:
        place = f"the kubeconfig {kubeconfig}" if kubeconfig else "the service account of this pod"
        raise NoAccess(f"{place} gives no access to a cluster: {error}") from error
    return Access(configuration, kubeconfig, context)
