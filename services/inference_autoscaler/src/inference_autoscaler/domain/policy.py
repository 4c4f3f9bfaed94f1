"""What an operator chose when the service was started."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from inference_autoscaler.domain.images import Images
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.routing import Routing
from kube import Manifest


@dataclass(frozen=True, slots=True)
class AutoscalerPolicy:
    """``acts`` says whether anything is decided here; ``left``, on which kinds all the same others decide."""

    acts: bool = True
    knative: KnativeConfiguration = field(default_factory=KnativeConfiguration)
    left: frozenset[str] = frozenset()
    routing: Routing = field(default_factory=Routing)
    images: Images = field(default_factory=Images)

    @classmethod
    def of(
        cls,
        knative: Manifest,
        *,
        acts: bool = True,
        left: Iterable[str] = (),
        routes: Manifest | None = None,
        images: Images | None = None,
    ) -> "AutoscalerPolicy":
        """``knative`` has the keys of Knative's ConfigMap config-autoscaler. Raises ValueError for what makes no sense."""
        routing = Routing.of(routes or {})
        return cls(acts, KnativeConfiguration.of(knative), frozenset(left), routing, images or Images())

    @classmethod
    def told(cls, settings: Manifest) -> "AutoscalerPolicy":
        """What a running service says that was chosen (`manifest`); what it does not say is as by default."""
        given = dict(settings)
        parts: Manifest = {"knative": KnativeConfiguration, "routing": Routing, "images": Images}
        read = {name: made(**given.pop(name)) for name, made in parts.items() if name in given}
        return cls(**{**given, "left": frozenset(given.get("left") or ()), **read})

    def manifest(self) -> Manifest:
        """As it is told to whoever asks."""
        return {**asdict(self), "left": sorted(self.left)}

    def decides(self, kind: str) -> bool:
        """Whether the sizes of what objects of ``kind`` name are decided here."""
        return self.acts and kind not in self.left
