"""The lifecycle of a pod, step by step in virtual time."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.domain import archive, probing, records, stopping
from node_agent.domain.containers import Pod, read_pod
from node_agent.domain.lifecycle import RestartRule, Verb, decide
from node_agent.domain.records import ContainerRecord, PodRecord, Process, Stage, Termination
from node_agent.domain.status import pod_status, with_conditions

RULE = RestartRule(10_000, 300_000)


class World:
    """A pod on a machine that does what it is told, at once."""

    def __init__(self, containers: list[Any], init: list[Any] | None = None, **spec: Any) -> None:
        self.manifest = {
            "metadata": {"uid": "u", "name": "p", "namespace": "default"},
            "spec": {"containers": containers, "initContainers": init or [], **spec},
            "status": {"podIP": "127.0.0.9"},
        }
        self.pod: Pod = read_pod(self.manifest)
        self.now = 0
        self.record = PodRecord({one.name: ContainerRecord() for one in self.pod.containers}, accepted_at=0)
        self.done: list[str] = []
        self.wake: int | None = None

    def step(self, seconds: float = 0) -> list[str]:
        """What is done after ``seconds``, as words such as ``start:main``."""
        self.now += int(seconds * 1000)
        plan = decide(self.pod, self.record, RULE, self.now)
        self.record, self.wake = with_conditions(self.pod, plan.record, self.now), plan.wake_at
        again = decide(self.pod, self.record, RULE, self.now)
        assert again.actions == (), "what was decided counts as done"
        done = [
            f"{action.verb.value}:{action.container}{action.probe and ':' + action.probe}" for action in plan.actions
        ]
        self.done += done
        for action in plan.actions:
            if action.verb is Verb.START:
                self._launch(action.container)
        return done

    def _launch(self, name: str) -> None:
        container = next(one for one in self.pod.containers if one.name == name)
        process = Process(100, 1, 99, 1)
        self.record = self.record.with_container(name, records.launched(self[name], container, process, self.now))

    def __getitem__(self, name: str) -> ContainerRecord:
        return self.record.containers[name]

    def end(self, name: str, code: int = 0) -> list[str]:
        reason = "Error" if code else "Completed"
        end = Termination(code, reason, "", self[name].started_at, self.now)
        self.record = self.record.with_container(name, records.ended(self[name], end))
        return self.step()

    def answer(self, name: str, kind: str, failure: str = "") -> list[str]:
        container = next(one for one in self.pod.containers if one.name == name)
        state = probing.answered(self[name], container, kind, failure, self.now)
        self.record = self.record.with_container(name, state)
        return self.step()

    def hook_done(self, name: str, failure: str | None = None) -> list[str]:
        """``failure`` None ends a preStop hook, a text a postStart hook."""
        state = self[name]
        new = records.pre_stop_done(state) if failure is None else records.post_start_done(state, failure)
        self.record = self.record.with_container(name, new)
        return self.step()

    def delete(self, grace_seconds: int) -> list[str]:
        self.record = stopping.told_to_stop(self.record, grace_seconds, self.now)
        return self.step()

    def status(self) -> Any:
        return pod_status(self.pod, self.record, self.manifest, {})


def box(name: str = "main", **fields: Any) -> Any:
    return {"name": name, "command": ["x"], **fields}


def exec_probe(**fields: Any) -> Any:
    return {"exec": {"command": ["check"]}, **fields}


def test_main_containers_start_together_and_the_pod_succeeds_with_the_last() -> None:
    world = World([box("a"), box("b")], restartPolicy="Never")
    assert world.step() == ["start:a", "start:b"]
    world.step()
    assert world.record.phase == "Running"
    world.end("a")
    assert world.record.phase == "Running"
    world.end("b")
    assert (world.record.phase, world.done) == ("Succeeded", ["start:a", "start:b"])


def test_init_containers_and_sidecars_wait_for_one_another() -> None:
    init = [box("one"), box("side", restartPolicy="Always", startupProbe=exec_probe()), box("two")]
    world = World([box()], init, restartPolicy="Never")
    assert world.step() == ["start:one"]
    assert world.end("one") == ["start:side"]
    assert world.step() == ["probe:side:startup"]
    assert world.answer("side", "startup") == ["start:two"]
    assert world.end("two") == ["start:main"]
    assert world.step() == []
    assert world.end("main") == ["terminate:side"]
    assert world.record.phase == "Running"
    world.end("side", 143)
    assert world.record.phase == "Succeeded"


def test_a_sidecar_is_restarted_whatever_the_pods_policy_and_the_others_go_on() -> None:
    world = World([box()], [box("side", restartPolicy="Always")], restartPolicy="Never")
    world.step()
    assert world.step() == ["start:main"]
    assert world.end("side", 1) == ["start:side"]
    assert world["main"].stage is Stage.RUNNING


def test_restarts_pause_longer_and_longer_and_forget_after_a_long_run() -> None:
    world = World([box()], restartPolicy="Always")
    world.step()
    pauses = []
    for _ in range(8):
        began = world.now
        done = world.end("main", 1)
        while not done:
            assert world.wake is not None
            done = world.step((world.wake - world.now) / 1000)
        pauses.append((world.now - began) // 1000)
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
    world.step(601)
    assert world.end("main", 1) == ["start:main"]
    assert world.status()["containerStatuses"][0]["restartCount"] == 9


def test_a_policy_of_on_failure_restarts_failures_only() -> None:
    world = World([box()], restartPolicy="OnFailure")
    world.step()
    assert world.end("main", 1) == ["start:main"]
    assert world.end("main", 0) == []
    assert world.record.phase == "Succeeded"


def test_a_deletion_runs_the_hook_then_sigterm_then_sigkill() -> None:
    world = World([box(lifecycle={"preStop": exec_probe()})])
    world.step()
    assert world.delete(30) == ["pre_stop:main"]
    assert world.hook_done("main") == ["terminate:main"]
    assert world.step(29.9) == []
    assert world.step(0.1) == ["kill:main"]
    world.end("main", 137)
    assert world.record.gone


def test_a_hook_that_uses_up_the_grace_leaves_two_seconds() -> None:
    world = World([box(lifecycle={"preStop": exec_probe()})])
    world.step()
    world.delete(5)
    assert world.step(5) == ["terminate:main"]
    assert world.step(1.9) == []
    assert world.step(0.1) == ["kill:main"]


def test_no_grace_is_no_sigterm_and_a_shorter_grace_counts_from_the_beginning() -> None:
    world = World([box()])
    world.step()
    assert world.delete(0) == ["kill:main"]
    world = World([box()])
    world.step()
    assert world.delete(60) == ["terminate:main"]
    assert world.step(10) == []
    assert world.delete(5) == ["kill:main"]


def test_a_pod_that_never_started_is_gone_at_once() -> None:
    world = World([box()])
    assert world.delete(30) == []
    assert world.record.gone


def test_sidecars_end_after_the_others_in_reverse_order() -> None:
    init = [box("s1", restartPolicy="Always"), box("s2", restartPolicy="Always")]
    world = World([box()], init)
    for _ in range(3):
        world.step()
    assert world.delete(30) == ["terminate:main"]
    assert world.end("main", 143) == ["terminate:s2"]
    assert world.end("s2", 143) == ["terminate:s1"]
    world.end("s1", 143)
    assert world.record.gone


def test_the_deadline_ends_the_pod_as_failed() -> None:
    world = World([box()], restartPolicy="Always", activeDeadlineSeconds=60)
    world.step()
    world.step()
    assert world.wake == 60_000
    assert world.step(60) == ["terminate:main"]
    world.end("main", 143)
    assert (world.record.phase, world.record.reason, world.record.gone) == ("Failed", "DeadlineExceeded", False)


def test_probes_wait_for_the_startup_probe_and_failures_restart() -> None:
    liveness = exec_probe(periodSeconds=5, failureThreshold=2, terminationGracePeriodSeconds=3)
    startup, readiness = exec_probe(periodSeconds=1), exec_probe(initialDelaySeconds=2)
    world = World([box(livenessProbe=liveness, startupProbe=startup, readinessProbe=readiness)])
    world.step()
    assert world.step() == ["probe:main:startup"]
    world.answer("main", "startup", "not yet")
    assert world.step(1) == ["probe:main:startup"]
    assert world.answer("main", "startup") == ["probe:main:liveness"]
    assert not world.status()["containerStatuses"][0]["ready"]
    assert world.step(1) == ["probe:main:readiness"]
    world.answer("main", "readiness")
    assert world.status()["containerStatuses"][0]["ready"]
    world.answer("main", "liveness", "dead")
    world.step(5)
    assert world.answer("main", "liveness", "dead") == ["terminate:main"]
    assert world.step(3) == ["kill:main"]
    assert world.end("main", 137) == ["start:main"]
    said = world.status()["containerStatuses"][0]["lastState"]["terminated"]["message"]
    assert said == "liveness probe failed 2 times in a row: dead"


def test_a_pod_is_ready_while_all_its_containers_are_and_says_which_are_not() -> None:
    world = World([box("a"), box("b", readinessProbe=exec_probe(failureThreshold=1))])
    world.step()
    world.step(1)
    conditions = {one["type"]: one for one in world.status()["conditions"]}
    assert conditions["Ready"]["message"] == "containers with unready status: [b]"
    world.step(4)
    world.answer("b", "readiness")
    conditions = {one["type"]: one for one in world.status()["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Ready"]["lastTransitionTime"]) == (
        "True",
        "1970-01-01T00:00:05Z",
    )
    assert conditions["Initialized"]["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_a_post_start_hook_comes_before_the_probes_count_and_its_failure_ends_the_container() -> None:
    world = World([box(lifecycle={"postStart": exec_probe()})], restartPolicy="Never")
    world.step()
    assert world.step() == ["post_start:main"]
    assert not world.status()["containerStatuses"][0]["started"]
    assert world.hook_done("main", "no") == ["terminate:main"]
    world.end("main", 143)
    assert "postStart hook failed: no" in world.status()["containerStatuses"][0]["state"]["terminated"]["message"]


def test_waiting_is_explained() -> None:
    world = World([box()], [box("first")])
    assert world.status()["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    world = World([box()])
    world.step()
    blocked = records.blocked(records.starting(ContainerRecord()), "CreateContainerConfigError", "ConfigMap x", 99_000)
    world.record = world.record.with_container("main", blocked)
    assert world.step() == [] and world.wake == 99_000
    waiting = world.status()["containerStatuses"][0]["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": "ConfigMap x"}
    world = World([box()])
    world.step()
    world.end("main", 1)
    world.end("main", 1)
    waiting = world.status()["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff" and "10s" in waiting["message"]


EVENTS = st.lists(
    st.tuples(st.sampled_from(["end", "fail", "wait", "answer", "refuse", "delete", "shorten"]), st.integers(0, 3)),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.sampled_from(["Always", "OnFailure", "Never"]))
def test_no_order_of_events_breaks_the_rules_of_a_pod(events: list[tuple[str, int]], policy: str) -> None:
    init = [box("init"), box("side", restartPolicy="Always", livenessProbe=exec_probe(failureThreshold=1))]
    main = [box("a", readinessProbe=exec_probe()), box("b", lifecycle={"preStop": exec_probe()})]
    world = World(main, init, restartPolicy=policy, terminationGracePeriodSeconds=5)
    world.step()
    final = ""
    for event, which in events:
        name = ["init", "side", "a", "b"][which]
        state, kinds = world[name], list(world[name].probes)
        if event in ("end", "fail") and state.stage is Stage.RUNNING:
            world.end(name, 0 if event == "end" else 1)
        elif event in ("answer", "refuse") and kinds:
            world.answer(name, kinds[0], "" if event == "answer" else "bad")
        elif event in ("delete", "shorten"):
            world.delete(20 if event == "delete" else 1)
        world.step(which * 4)
        record = world.record
        if record.phase == "Running":
            assert world["init"].end is not None and world["init"].end.exit_code == 0
        assert not (record.gone and record.alive), "a pod that is gone runs nothing"
        assert final in ("", record.phase), "a final phase stays"
        final = record.phase if record.phase in ("Succeeded", "Failed") else final
        assert archive.decode(archive.encode(record)).containers.keys() == record.containers.keys()
    world.delete(1)
    for _ in range(12):
        world.step(5)
        for name in ("init", "side", "a", "b"):
            if world[name].halt in ("term", "kill") and world[name].stage is Stage.RUNNING:
                world.end(name, 137)
    assert world.record.gone, "whatever happened, a deletion ends it"


def test_a_record_survives_its_archive() -> None:
    world = World([box(readinessProbe=exec_probe())], restartPolicy="Always")
    world.step()
    world.end("main", 2)
    world.delete(7)
    again = archive.decode(archive.encode(world.record))
    states = {name: replace(state, probes={}) for name, state in world.record.containers.items()}
    assert replace(again, containers={name: replace(s, probes={}) for name, s in again.containers.items()}) == replace(
        world.record, containers=states
    )


def test_what_others_ask_is_asked_until_it_is_answered_and_told_in_a_condition() -> None:
    world = World([box()], restartPolicy="Never")
    asked = {"a.dev/web": {"tcpSocket": {"port": 80}}, "Ready": {"tcpSocket": {"port": 81}}, "a.dev/none": {"exec": {}}}
    world.manifest["metadata"]["annotations"] = {"tidegate.dev/probes": json.dumps(asked)}
    world.pod = read_pod(world.manifest)

    def told() -> tuple[str, str]:
        return next(
            (one["status"], one["message"]) for one in world.status()["conditions"] if one["type"] == "a.dev/web"
        )

    world.step()
    assert world.step() == ["probe:main:a.dev/web"]
    for _ in range(5):  # an answer that does not come ends nothing
        world.answer("main", "a.dev/web", "refused")
        assert told() == ("False", "refused")
        assert world.step(1) == ["probe:main:a.dev/web"]
    world.answer("main", "a.dev/web")
    world.record = archive.decode(archive.encode(world.record))
    assert told() == ("True", "") and world.step(5) == []
    world.end("main")
    assert told() == ("True", "")
