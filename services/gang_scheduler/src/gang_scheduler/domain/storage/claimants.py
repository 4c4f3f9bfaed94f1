"""Which pods name which claims: claims of volumes, and claims of devices (ResourceClaims)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.pods.pod_record import PodRecord
from kube import Key


@dataclass(slots=True)
class Claimants:
    """The pods that name a claim, in the order in which they came."""

    _of_volumes: dict[Key, dict[Key, PodRecord]] = field(default_factory=dict)
    _of_devices: dict[Key, dict[Key, PodRecord]] = field(default_factory=dict)
    unreleased: dict[Key, None] = field(default_factory=dict)
    """The resource claims of which it is to be seen whether those who have them are still there."""

    def come(self, record: PodRecord) -> None:
        """A pod that names claims of volumes is there."""
        for claim in record.shape.claims:
            self._of_volumes.setdefault(claim, {})[record.key] = record

    def go(self, record: PodRecord) -> None:
        """A pod is not there any more."""
        for claim in record.shape.claims:
            _drop(self._of_volumes, claim, record)
        for claim in record.claim_keys:
            _drop(self._of_devices, claim, record)
        self.end(record)

    def end(self, record: PodRecord) -> None:
        """A pod is gone or has ended: its claims of devices may be for nobody now."""
        self.unreleased.update(dict.fromkeys(record.claim_keys))

    def rename(self, record: PodRecord, claims: tuple[Key, ...]) -> None:
        """These are the pod's claims of devices by now."""
        for claim in record.claim_keys:
            _drop(self._of_devices, claim, record)
        record.claim_keys = claims
        for claim in claims:
            self._of_devices.setdefault(claim, {})[record.key] = record

    def of_volume(self, claim: Key) -> Sequence[PodRecord]:
        """The pods that name a claim of a volume."""
        return list(self._of_volumes.get(claim, {}).values())

    def of_volumes(self) -> Iterator[PodRecord]:
        """The pods that name any, once for each."""
        for records in self._of_volumes.values():
            yield from records.values()

    def of_device(self, claim: Key) -> Sequence[PodRecord]:
        """The pods that name a claim of devices."""
        return list(self._of_devices.get(claim, {}).values())

    def of_devices(self) -> Iterator[PodRecord]:
        """The pods that name any, once for each."""
        for records in self._of_devices.values():
            yield from records.values()


def _drop(index: dict[Key, dict[Key, PodRecord]], claim: Key, record: PodRecord) -> None:
    if records := index.get(claim):
        records.pop(record.key, None)
        if not records:
            del index[claim]
