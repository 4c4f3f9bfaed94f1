"""Running one scenario against a target: step by step, each followed by what must always be so."""

from dataclasses import dataclass

from kube import Key
from testing.scenarios.applying import batches, known_key, prepared, seeded, seeds, stored, title
from testing.scenarios.invariants import Watch
from testing.scenarios.nodes import change_patch, hypernodes
from testing.scenarios.scenario import (
    Advance,
    Apply,
    ChangeNodes,
    Delete,
    Expect,
    Given,
    Mismatch,
    Nodes,
    PodReports,
    Restart,
    SampleMetrics,
    SampleUsage,
    Scenario,
    Step,
)
from testing.scenarios.target import OpenTarget, Target


@dataclass(frozen=True, slots=True)
class Result:
    """How a scenario ended. ``step`` counts from 1; 0 stands for the start, where nothing of the file was reached."""

    area: str
    name: str
    passed: bool
    step: int = 0
    matcher: str = ""
    wanted: str = ""
    got: str = ""


def run_scenario(scenario: Scenario, open_target: OpenTarget, seed: int = 0) -> Result:
    """Run the scenario to its end or its first difference. What the target raises is a difference too."""
    step = 0
    try:
        target = open_target(scenario.policy, scenario.simulate, seed)
        try:
            run = _Run(target, Watch(), seeds(scenario), target.now())
            for step, what in enumerate(scenario.steps, 1):
                mismatch = run.step(what)
                if mismatch:
                    return _failed(scenario, step, mismatch)
        finally:
            target.close()
    except Exception as error:  # a case must end with a result, whatever the system under it does
        return _failed(scenario, step, Mismatch("error", "none", f"{type(error).__name__}: {error}"))
    return Result(scenario.area, scenario.name, True)


def _failed(scenario: Scenario, step: int, mismatch: Mismatch) -> Result:
    return Result(scenario.area, scenario.name, False, step, mismatch.matcher, mismatch.wanted, mismatch.got)


@dataclass(slots=True)
class _Run:
    target: Target
    watch: Watch
    seeds_left: int
    started_at: int

    def step(self, step: Step) -> Mismatch | None:
        """Carry out one step; the first thing that is not as it should be, or None."""
        mismatch = self._act(step)
        if mismatch:
            return mismatch
        self.watch.see(self.target.store())
        self.target.settle()
        return self._expected(step) or self._invariants()

    def _act(self, step: Step) -> Mismatch | None:
        match step:
            case Nodes(nodes):
                names = hypernodes(nodes, self.target.store())
                self.target.put_nodes([node.manifest for node in nodes] + names)
            case Apply(objects, rejects):
                return self._apply(objects, rejects)
            case Delete():
                return self._delete(step)
            case Advance(ms):
                self.target.advance(ms)
            case PodReports():
                return self._report(step)
            case ChangeNodes():
                return self._change_nodes(step)
            case SampleUsage(usage):
                for node, sample in usage.items():
                    self.target.sample_usage(node, sample)
            case SampleMetrics(samples):
                self.target.sample_metrics(samples)
            case Restart(roles):
                self.target.restart(roles)
            case Expect():
                pass
        return None

    def _apply(self, objects: tuple[Given, ...], rejects: str | None) -> Mismatch | None:
        """Objects in the order of the file: pods that run already become facts, all others pass as a user's, as many
        of them in one go as do not refer to each other.
        """
        for batch in batches(objects):
            if batch[0].node:
                self._seed(batch)
                continue
            mismatch = self._send(batch, rejects)
            if mismatch:
                return mismatch
        return None

    def _seed(self, batch: list[Given]) -> None:
        for given in batch:
            created = self.started_at - self.seeds_left * 1000
            self.seeds_left -= 1
            manifest = seeded(given, self.target.store(), created)
            self.target.seed([manifest])
            key = known_key(manifest)
            pod = self.target.store().get(key) if key else None
            self.watch.seeded([pod] if pod else [])

    def _send(self, batch: list[Given], rejects: str | None) -> Mismatch | None:
        store = self.target.store()
        manifests = [prepared(given, store) for given in batch]
        before = [store.get(key) if (key := known_key(manifest)) else None for manifest in manifests]
        messages = self.target.apply(manifests)
        for manifest, old, message in zip(manifests, before, messages, strict=True):
            what = f"apply {title(manifest)}"
            if rejects is None and message is not None:
                return Mismatch(what, "accepted", f"refused: {message}")
            if rejects is not None:
                fault = _not_refused(what, rejects, message) or stored(manifest, old, self.target.store())
                if fault:
                    return fault
        return None

    def _delete(self, step: Delete) -> Mismatch | None:
        for ref in step.refs:
            key = ref.key(self.target.store())
            message = self.target.delete(key)
            if step.rejects is None and message:
                return Mismatch(f"delete {ref}", "accepted", f"refused: {message}")
            fault = _not_refused(f"delete {ref}", step.rejects, message) if step.rejects is not None else None
            if fault:
                return fault
            if step.rejects is None:
                self.watch.deleted(key)
        return None

    def _report(self, step: PodReports) -> Mismatch | None:
        for report in step.reports:
            pods = report.selector.find(self.target.store())[: report.take]
            if len(pods) < (report.take or 1):
                return Mismatch(f"report on {report.selector}", f"{report.take or 1} of them", f"{len(pods)} of them")
            for pod in pods:
                self.target.set_pod(pod.namespace, pod.name, report.report)
        return None

    def _change_nodes(self, step: ChangeNodes) -> Mismatch | None:
        for change in step.changes:
            key = Key("Node", "", change.name)
            node = self.target.store().get(key)
            if node is None:
                return Mismatch(f"node {change.name}", "a node to change", "no such node")
            patch = change_patch(change, node)
            if patch:
                self.target.patch_node(change.name, patch)
            if change.deleted:
                self.watch.deleted(key)
                self.target.delete_node(change.name)
        return None

    def _expected(self, step: Step) -> Mismatch | None:
        if not isinstance(step, Expect):
            return None
        return next((fault for matcher in step.matchers if (fault := matcher.mismatch(self.target))), None)

    def _invariants(self) -> Mismatch | None:
        broken = self.watch.check(self.target.store(), self.target.evictions()) + self.target.violations()
        return Mismatch("always", "every invariant holds", "; ".join(broken)) if broken else None


def _not_refused(what: str, rejects: str, message: str | None) -> Mismatch | None:
    if message is not None and rejects.lower() in message.lower():
        return None
    return Mismatch(what, f"refused with {rejects!r}", "accepted" if message is None else f"refused: {message}")
