"""Why gangs that have to be near each other find no place, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from gang_scheduler.domain.gangs.podset_start import PodSetStart
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.reasons.block import ANYTHING, Block
from gang_scheduler.domain.reasons.explain import Explanation, Reason
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.terms.network_words import Topology
from gang_scheduler.domain.topology.network_domains import Need
from kube.words import counted, verb


@dataclass(slots=True)
class DomainObstacles:
    """Looks at the books behind ``trial`` as they are. ``block`` is what keeps the records out of the nodes in general."""

    trial: Trial

    def first(self, groups: Sequence[Group], choices: Sequence[Sequence[PodRecord]], block: Block) -> Block:
        """Why gangs cannot start: the first pod set without a place, else that no network domain is large enough."""
        for group, choice in zip(groups, choices, strict=True):
            told = self._of_podsets(group, choice, block)
            if told is not None:
                return told
        if all(group.id.kind == "pod" for group in groups):
            return block
        for group, choice in zip(groups, choices, strict=True):
            topology = group.terms.topology if group.terms is not None else None
            if topology is not None and topology.hard and not self._possible(topology, group, len(choice)):
                who = f"the {counted(len(choice), 'member')} of {group.name} that {verb(len(choice), 'starts', 'start')} together"
                message = f"no network domain {topology} holds {who}, even if it were empty, so it can never start"
                return Block(Explanation(Reason.NEVER_FITS, message, block.explanation.detail), ANYTHING, hopeless=True)
        count = sum(map(len, choices))
        asked = [str(group.terms.topology) for group in groups if group.terms is not None and group.terms.topology]
        where = f"no network domain {asked[0]}" if asked else "no set of network domains"
        message = block.explanation.message.removesuffix(".")
        message += f"; {where} holds the {counted(count, 'member')} of {groups[0].name} that {verb(count, 'starts', 'start')} together"
        return Block(Explanation(Reason.NOT_ENOUGH_RESOURCES, message, block.explanation.detail), ANYTHING)

    def later(self, group: Group, records: Sequence[PodRecord], block: Block) -> Block:
        """Why more members of a gang that runs have no place beside those that have one."""
        told = self._of_podsets(group, records, block)
        if told is not None or block.hopeless:
            return told or block
        placed = sum(1 for record in group.members.values() if record.slot >= 0)
        if group.terms is None or group.terms.topology is None or not placed:
            return block._replace(wake=ANYTHING)
        who = f"pod {records[0].key.name}" if len(records) == 1 else f"{len(records)} more members"
        message = f"no network domain {group.terms.topology} that has the {placed} placed members of {group.name} has room for {who}"
        reason, told_before = block.explanation.reason, block.explanation.message.removesuffix(".")
        return Block(Explanation(reason, f"{told_before}; {message}", block.explanation.detail), ANYTHING)

    def _of_podsets(self, group: Group, records: Sequence[PodRecord], block: Block) -> Block | None:
        obstacle = PodSetStart(self.trial).obstacle(group, records)
        if obstacle is None:
            return None
        told = Explanation(Reason.NO_DOMAIN, obstacle.sentence(group.name), block.explanation.detail)
        return Block(told, ANYTHING, hopeless=bool(obstacle.fault))

    def _possible(self, topology: Topology, group: Group, count: int) -> bool:
        """Whether some domain would hold so many members if it were empty; not looked into where they are of several shapes."""
        room = self.trial.room
        kinds = {record.shape.index: record for record in group.pending.values()}
        if len(kinds) != 1:
            return True
        needs = [Need(room.view(record).when_empty(), count) for record in kinds.values()]
        return room.hyper_nodes.possible(topology, needs)
