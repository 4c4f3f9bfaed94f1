"""KServe's agent in front of a server: it batches requests and logs what goes by."""

from dataclasses import dataclass

from kube import Manifest

CONTAINER, PORT = "agent", 9081
_RESOURCES = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


@dataclass(frozen=True, slots=True)
class Agent:
    """``batcher`` and ``logger`` are as the component has them, None where it has none."""

    batcher: Manifest | None
    logger: Manifest | None

    @classmethod
    def of(cls, component: Manifest) -> "Agent | None":
        """What the component asks for; None where it asks for neither."""
        batcher, logger = component.get("batcher"), component.get("logger")
        return None if batcher is None and logger is None else cls(batcher, logger)

    def container(self, service: str, role: str, port: int, image: str) -> Manifest:
        """The container that stands before the one that serves at ``port``."""
        args = [*self._batching(), *self._logging(service, role), "--component-port", str(port)]
        variables: list[Manifest] = [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ]
        header = {"name": "K-Network-Probe", "value": "queue"}
        return {
            "name": CONTAINER,
            "image": image,
            "args": args,
            "env": variables,
            "resources": _RESOURCES,
            "ports": [{"name": "agent-port", "containerPort": PORT, "protocol": "TCP"}],
            "readinessProbe": {"httpGet": {"path": "/", "port": PORT, "httpHeaders": [header]}},
        }

    def _batching(self) -> list[str]:
        if self.batcher is None:
            return []
        said = {"--max-batchsize": self.batcher.get("maxBatchSize"), "--max-latency": self.batcher.get("maxLatency")}
        return ["--enable-batcher", *(word for name, value in said.items() if value for word in (name, str(value)))]

    def _logging(self, service: str, role: str) -> list[str]:
        if self.logger is None:
            return []
        storage = self.logger.get("storage") or {}
        said = {
            "--log-url": self.logger.get("url"),
            "--source-uri": "$(POD_NAME)",
            "--log-mode": self.logger.get("mode") or "all",
            "--inference-service": service,
            "--namespace": "$(POD_NAMESPACE)",
            "--endpoint": f"{service}-{role}",
            "--component": role,
            "--log-store-path": storage.get("path"),
            "--log-store-format": (storage.get("parameters") or {}).get("format"),
            "--metadata-headers": ",".join(self.logger.get("metadataHeaders") or ()),
        }
        return [word for name, value in said.items() if value for word in (name, str(value))]
