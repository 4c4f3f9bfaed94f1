"""Images of the containers that pods of models and graphs get besides those that somebody says: what an operator chose."""

from dataclasses import dataclass, fields

from kube import Manifest

OURS = "tidegate/"
_KEYS = {"storageInitializer": "storage_initializer", "agent": "agent", "graphRouter": "graph_router"}


@dataclass(frozen=True, slots=True)
class Images:
    """Of who fetches models, of who batches and logs before a server, and of who takes requests through a graph."""

    storage_initializer: str = f"{OURS}storage-initializer:0.1.0"
    agent: str = "kserve/agent:latest"
    graph_router: str = f"{OURS}graph-router:0.1.0"

    @classmethod
    def of(cls, given: Manifest, registry: str = "") -> "Images":
        """``given`` has the keys storageInitializer, agent and graphRouter. Before names of ours that are not given goes ``registry``.

        Raises ValueError for a key that there is not.
        """
        if unknown := given.keys() - _KEYS.keys():
            raise ValueError(f"images: {', '.join(sorted(unknown))}: no such key; there are {', '.join(sorted(_KEYS))}")
        before = f"{registry.rstrip('/')}/" if registry else ""
        usual = {one.name: str(one.default) for one in fields(cls)}
        placed = {name: before + image if image.startswith(OURS) else image for name, image in usual.items()}
        return cls(**placed | {_KEYS[key]: str(image) for key, image in given.items() if image})
