"""The nodes of a cluster: their room, what they have of devices, and what is measured on them."""

from dataclasses import dataclass, field

from gang_scheduler.domain.books.pod_books import PodBooks
from gang_scheduler.domain.devices.node_inventory import DESCRIPTIONS, NodeInventory, inventory_of
from gang_scheduler.domain.nodes.node_metric import Measurement, measurement_of
from gang_scheduler.domain.terms.load_policy import USAGE_THRESHOLDS
from gang_scheduler.domain.terms.node_rules import NODE_GROUP
from gang_scheduler.domain.terms.revocable_pods import ZONE
from kube import Event, Key, Object


@dataclass(slots=True)
class NodeBooks(PodBooks):
    """The pods, and the nodes that they are on."""

    nodes: dict[str, Object] = field(default_factory=dict)
    descriptions: dict[Key, Object] = field(default_factory=dict)
    """What describes the CPUs and cards of nodes, under the node's name."""

    _measured: dict[str, Measurement] = field(default_factory=dict)
    _inventories: dict[str, NodeInventory] = field(default_factory=dict)

    def fold_node(self, event: Event) -> None:
        """A node came, changed or went."""
        name = event.key.name
        if event.new is None:
            for record in list(self.on_node.get(name, {}).values()):
                self.lift(record)
            self.room.reserved.node_gone(name)
            self.room.table.remove(name)
            self.nodes.pop(name, None)
            self._inventories.pop(name, None)
            self._label(name, None)
            self.zones.put(name, "")
            return
        known = name in self.nodes
        self.nodes[name] = event.new
        self.zones.put(name, event.new.labels.get(ZONE, ""))
        self.room.table.put(event.new, self.zones.taints(name))
        self._label(name, event.new.labels.get(NODE_GROUP))
        self._renew_devices_of(name)
        if not known:
            for record in self.on_node.get(name, {}).values():
                self.count(record)
            self.room.reserved.node_came(name, self.on_node.get(name, {}))
        if name in self._measured:
            self._renew_load_of(name)

    def advance(self, now: int) -> None:
        """The time goes on: revocable nodes open and close."""
        for name in self.zones.advance(now):
            self.room.table.put(self.nodes[name], self.zones.taints(name))

    def _label(self, node: str, group: str | None) -> None:
        """The node group of a node: with the first one, and when the last one goes, it matters to those without one."""
        if self.forms.queue_nodes.label(node, group):
            self.regroup()

    def fold_description(self, event: Event) -> None:
        """What describes the CPUs or cards of a node is something else now."""
        if event.new is None:
            self.descriptions.pop(event.key, None)
        else:
            self.descriptions[event.key] = event.new
        if event.key.name in self.nodes:
            self._renew_devices_of(event.key.name)

    def fold_metric(self, event: Event) -> None:
        """What a node uses was measured."""
        name = event.key.name
        found = measurement_of(event.new) if event.new is not None else None
        if found is None:
            self._measured.pop(name, None)
        else:
            self._measured[name] = found
        self._renew_load_of(name)

    def _renew_load_of(self, name: str) -> None:
        """What a node uses, or how much it may use, is something else now."""
        table, found = self.room.table, self._measured.get(name)
        slot = table.slots.get(name, -1)
        if slot < 0 or not self.load.enabled:
            return
        if found is None:
            table.load.forget(slot)
        else:
            thresholds = self.load.on(self.nodes[name].annotations.get(USAGE_THRESHOLDS))
            records = self.on_node.get(name, {}).values()
            pods = [record.newcomer() for record in records if record.slot >= 0]
            table.load.measure(slot, found, thresholds, table.measured_of(slot), pods, self._is_prod)
        table.room.add(slot)

    def _is_prod(self, pod: Key) -> bool:
        record = self.pods.get(pod)
        return record is not None and record.shape.prod

    def _renew_devices_of(self, name: str) -> None:
        """If a node's devices are others now, all that runs there takes its own anew."""
        table = self.room.table
        slot = table.slots[name]
        said = {kind: found for kind in DESCRIPTIONS if (found := self.descriptions.get(Key(kind, "", name)))}
        inventory = inventory_of(self.nodes[name], said)
        if inventory == self._inventories.get(name):
            return
        self._inventories[name] = inventory
        records = [record for record in self.on_node.get(name, {}).values() if record.slot >= 0]
        for record in records:
            self.lift(record)
        table.devices.put(slot, inventory)
        table.rules.add(slot)
        for record in records:
            self.count(record)
        self.room.reserved.hold_again(slot)
