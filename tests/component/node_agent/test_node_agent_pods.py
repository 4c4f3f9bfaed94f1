"""Pods as real processes: what they are given, how they end, what is said of them."""

import asyncio
import json
import os
from typing import Any

import pytest

from kube import merge


async def test_a_command_runs_to_its_end_and_its_output_is_kept(bench: Any) -> None:
    status = await bench.run(bench.pod("ok", "sh", "-c", "echo out; echo err >&2"), "Succeeded")
    assert await bench.log("uid-ok") == "out\nerr\n"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert status["podIP"] == "127.20.0.1" and status["startTime"]


async def test_an_exit_code_and_a_signal_are_told_apart(bench: Any) -> None:
    bench.assign(bench.pod("code", "sh", "-c", "exit 3"), bench.pod("signal", "sh", "-c", "kill -USR1 $$$$"))
    await bench.upstream.phase("uid-code", "Failed")
    await bench.upstream.phase("uid-signal", "Failed")
    assert bench.upstream.container("uid-code")["state"]["terminated"]["exitCode"] == 3
    ended = bench.upstream.container("uid-signal")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["signal"]) == (138, "Error", 10)


async def test_a_container_without_command_fails_and_names_the_field(bench: Any) -> None:
    status = await bench.run(bench.pod("image"), "Failed")
    assert status["reason"] == "ImageNotRunnable"
    assert "spec.containers[0].command" in status["message"] and "busybox" in status["message"]


async def test_a_pod_that_is_to_run_for_ever_waits_where_one_that_is_to_end_fails(bench: Any) -> None:
    """Failed, its Deployment would make another one at once, and so on without end."""
    bench.assign(bench.pod("web", restartPolicy="Always"))

    def waiting() -> dict[str, Any]:
        states = [one["state"] for one in bench.upstream.statuses.get("uid-web", {}).get("containerStatuses", ())]
        return next((state["waiting"] for state in states if "waiting" in state), {})

    await bench.upstream.until(lambda: waiting().get("reason") == "ImageNotRunnable")
    assert "spec.containers[0].command" in waiting()["message"]
    assert bench.upstream.statuses["uid-web"]["phase"] == "Pending"


async def test_a_program_that_is_not_there_is_a_start_error(bench: Any) -> None:
    await bench.run(bench.pod("none", "no-such-program"), "Failed")
    ended = bench.upstream.container("uid-none")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert "'no-such-program'" in ended["message"] and "PATH" in ended["message"]


async def test_variables_come_from_fields_maps_secrets_and_each_other(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_AGENT", "1")
    bench.upstream.secrets["default/s"] = {"password": b"geheim"}
    env = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "mode"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
        {"name": "URL", "value": "http://$(IP):80/$(MODE)?$(NONE)"},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "C_"}],
        "args": ["-c", "env; echo $0", "$(URL)"],
    }
    container["resources"] = {"limits": {"cpu": "1500m", "nvidia.com/gpu": 2}}
    devices = {"annotations": {"tidegate.dev/devices": json.dumps({"nvidia.com/gpu": [3, 1]})}}
    await bench.run(
        bench.pod("env", "sh", container=container, metadata=devices),
        "Succeeded",
        config_maps={"default/c": {"mode": "fast"}},
    )
    lines = (await bench.log("uid-env")).splitlines()
    expected = ["IP=127.20.0.1", "PASSWORD=geheim", "C_mode=fast", "CPUS=2", "HOSTNAME=env", "CUDA_VISIBLE_DEVICES=1,3"]
    assert set(expected) <= set(lines)
    assert lines[-1] == "http://127.20.0.1:80/fast?$(NONE)"
    assert not any(line.startswith("OF_THE_AGENT") for line in lines)


async def test_a_container_waits_for_its_config_map_and_starts_when_it_comes(bench: Any) -> None:
    container = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "a"}}}]}
    late = bench.pod("late", "sh", "-c", "echo $A", container=container)
    bench.assign(late)
    waiting = {"reason": "CreateContainerConfigError", "message": "ConfigMap default/late not found"}
    await bench.upstream.until(
        lambda: (
            "uid-late" in bench.upstream.statuses
            and bench.upstream.container("uid-late")["state"].get("waiting") == waiting
        )
    )
    await bench.run(late, "Succeeded", config_maps={"default/late": {"a": "here"}})
    assert await bench.log("uid-late") == "here\n"


async def test_a_container_waits_for_its_secret(bench: Any) -> None:
    container = {"envFrom": [{"secretRef": {"name": "s"}}]}
    bench.assign(bench.pod("s", "sh", "-c", "echo $key", container=container))
    await bench.upstream.until(lambda: "uid-s" in bench.upstream.statuses)
    bench.upstream.secrets["default/s"] = {"key": b"value"}
    await bench.upstream.phase("uid-s", "Succeeded")
    assert await bench.log("uid-s") == "value\n"


async def test_init_containers_run_in_order_and_a_sidecar_beside_and_longer_than_the_work(bench: Any) -> None:
    def step(name: str, script: str, **more: object) -> dict[str, object]:
        return {"name": name, "command": ["sh", "-c", script], **more}

    trap = "trap 'echo side-end >> $HOME/order; exit 0' TERM; echo side >> $HOME/order; while :; do sleep 0.05; done"
    waits = {"exec": {"command": ["sh", "-c", "test -s $HOME/order"]}}
    init = [
        step("one", "sleep 0.1; echo one >> $HOME/order"),
        step("side", trap, restartPolicy="Always", startupProbe={**waits, "periodSeconds": 1}),
        step("two", "echo two >> $HOME/order"),
    ]
    shared = bench.pod("init", "sh", "-c", "echo main >> $HOME/order; cat $HOME/order", initContainers=init)
    status = await bench.run(shared, "Succeeded")
    assert (await bench.log("uid-init")).split() == ["one", "side", "two", "main"]
    order = bench.settings.data_dir / "pods/uid-init/home/order"
    assert order.read_text().split() == ["one", "side", "two", "main", "side-end"]
    assert [one["restartCount"] for one in status["initContainerStatuses"]] == [0, 0, 0]


async def test_a_failed_init_container_fails_a_pod_that_is_never_restarted(bench: Any) -> None:
    init = [{"name": "bad", "command": ["sh", "-c", "exit 4"]}]
    status = await bench.run(bench.pod("p", "echo", "never", initContainers=init), "Failed")
    assert "bad" in status["message"] and "4" in status["message"]
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"


async def test_a_failing_container_is_restarted_with_a_growing_pause(bench: Any) -> None:
    script = "echo x >> $HOME/tries; test $(wc -l < $HOME/tries) -ge 3"
    await bench.run(bench.pod("again", "sh", "-c", script, restartPolicy="OnFailure"), "Succeeded")
    container = bench.upstream.container("uid-again")
    assert container["restartCount"] == 2
    assert container["lastState"]["terminated"]["exitCode"] == 1


async def test_a_deleted_pod_gets_its_grace_and_is_gone(bench: Any) -> None:
    script = "trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done"
    asked = bench.pod("del", "sh", "-c", script)
    await bench.run(asked, "Running")
    await bench.until_log("uid-del", "up")
    bench.assign(
        merge(asked, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 20}})
    )
    await bench.upstream.until(lambda: "uid-del" in bench.upstream.gone)
    assert bench.upstream.container("uid-del")["state"]["terminated"]["exitCode"] == 7
    bench.assign()
    assert not (bench.settings.data_dir / "pods/uid-del").exists()


async def test_what_ignores_sigterm_is_killed_with_all_that_it_started(bench: Any) -> None:
    script = "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 1000\" & echo up; sleep 1000; sleep 1000"
    stubborn = bench.pod("stub", "sh", "-c", script)
    await bench.run(stubborn, "Running")
    await bench.until_log("uid-stub", "up")
    gone = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 1}}
    bench.assign(merge(stubborn, gone))
    await bench.upstream.until(lambda: "uid-stub" in bench.upstream.gone)
    assert bench.upstream.container("uid-stub")["state"]["terminated"]["exitCode"] == 137
    assert bench.leftovers("sleep") == []


async def test_what_a_container_leaves_behind_ends_with_it(bench: Any) -> None:
    await bench.run(bench.pod("daemon", "sh", "-c", "setsid sleep 1000 & exit 0"), "Succeeded")
    assert bench.leftovers("sleep") == []


async def test_a_pod_that_is_assigned_no_more_is_stopped(bench: Any) -> None:
    await bench.run(bench.pod("moved", "sleep", "1000"), "Running")
    bench.assign()
    await bench.upstream.until(lambda: "uid-moved" in bench.upstream.gone)
    assert not (bench.settings.data_dir / "pods/uid-moved").exists()


async def test_hooks_run_inside_of_the_container(bench: Any) -> None:
    lifecycle = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started-$HOSTNAME > $HOME/hook"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping >> $HOME/hook"]}},
    }
    script = "trap 'cat $HOME/hook; exit 0' TERM; while :; do sleep 0.02; done"
    hooked = bench.pod("hook", "sh", "-c", script, container={"lifecycle": lifecycle})
    bench.assign(hooked)
    await bench.upstream.until(
        lambda: (
            bench.upstream.statuses.get("uid-hook", {}).get("phase") == "Running"
            and bench.upstream.container("uid-hook")["ready"]
        )
    )
    bench.assign(merge(hooked, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
    await bench.upstream.until(lambda: "uid-hook" in bench.upstream.gone)
    assert await bench.log("uid-hook") == "started-hook\nstopping\n"


async def test_a_failed_post_start_hook_ends_the_container(bench: Any) -> None:
    lifecycle = {"postStart": {"exec": {"command": ["sh", "-c", "echo no luck; exit 1"]}}}
    await bench.run(bench.pod("bad", "sleep", "1000", container={"lifecycle": lifecycle}), "Failed")
    assert "no luck" in bench.upstream.container("uid-bad")["state"]["terminated"]["message"]


async def test_a_pod_is_ready_when_it_answers_on_its_own_address(bench: Any) -> None:
    serve = "import http.server as h; h.HTTPServer(('127.20.0.1', 18431), h.SimpleHTTPRequestHandler).serve_forever()"
    probe = {"httpGet": {"port": "web", "path": "/"}, "periodSeconds": 1, "timeoutSeconds": 1}
    container = {
        "readinessProbe": probe,
        "startupProbe": {"tcpSocket": {"port": 18431}, "periodSeconds": 1, "failureThreshold": 20},
        "ports": [{"name": "web", "containerPort": 18431}],
    }
    bench.assign(bench.pod("web", "python", "-c", serve, container=container))
    await bench.upstream.until(
        lambda: "uid-web" in bench.upstream.statuses and bench.upstream.container("uid-web")["ready"]
    )
    ready = {item["type"]: item["status"] for item in bench.upstream.statuses["uid-web"]["conditions"]}
    assert ready["Ready"] == "True"


async def test_whoever_asks_is_told_whether_a_pod_answers(bench: Any) -> None:
    """The pod listens on one of two ports; its annotation asks for both."""
    serve = "import socket as s; c = s.create_server(('127.20.0.1', 18433)); [c.accept() for _ in iter(int, 1)]"
    asked = {f"example.com/{port}": {"tcpSocket": {"port": port}} for port in (18433, 18434)}
    metadata = {"annotations": {"tidegate.dev/probes": json.dumps(asked)}}
    bench.assign(bench.pod("asked", "python", "-c", serve, metadata=metadata))

    def told() -> dict[str, str]:
        conditions = bench.upstream.statuses.get("uid-asked", {}).get("conditions", ())
        return {item["type"]: item["status"] + item["message"] for item in conditions if "example.com" in item["type"]}

    await bench.upstream.until(lambda: told().get("example.com/18433") == "True")
    await bench.upstream.until(lambda: "127.20.0.1:18434" in told()["example.com/18434"])
    assert told()["example.com/18434"].startswith("False")
    assert bench.upstream.container("uid-asked")["restartCount"] == 0


async def test_a_container_whose_liveness_fails_is_started_again(bench: Any) -> None:
    probe = {"exec": {"command": ["sh", "-c", "echo sick; exit 1"]}, "periodSeconds": 1, "failureThreshold": 1}
    bench.assign(bench.pod("sick", "sleep", "1000", container={"livenessProbe": probe}, restartPolicy="Always"))
    await bench.upstream.until(
        lambda: "uid-sick" in bench.upstream.statuses and bench.upstream.container("uid-sick")["restartCount"] == 1
    )
    ended = bench.upstream.container("uid-sick")["lastState"]["terminated"]
    assert ended["exitCode"] == 143 and "liveness probe failed" in ended["message"] and "sick" in ended["message"]


async def test_reports_are_said_again_until_they_are_stored(bench: Any) -> None:
    bench.upstream.broken = True
    bench.assign(bench.pod("quiet", "true"))
    worker = bench.running._workers["uid-quiet"]
    while worker.record.phase != "Succeeded":
        await asyncio.sleep(0.01)
    assert "uid-quiet" not in bench.upstream.statuses
    bench.upstream.broken = False
    await bench.upstream.phase("uid-quiet", "Succeeded")


async def test_a_broken_manifest_fails_its_pod_and_nothing_else(bench: Any) -> None:
    wrong = bench.pod("wrong", "true", terminationGracePeriodSeconds="soon")
    bench.assign(wrong, bench.pod("../../etc", "true", metadata={"uid": "uid-path"}), bench.pod("fine", "true"))
    await bench.upstream.phase("uid-fine", "Succeeded")
    assert (await bench.upstream.phase("uid-wrong", "Failed"))["reason"] == "InvalidPod"
    assert "metadata.name" in (await bench.upstream.phase("uid-path", "Failed"))["message"]


async def test_a_pod_ends_when_its_deadline_is_over(bench: Any) -> None:
    status = await bench.run(bench.pod("slow", "sleep", "1000", activeDeadlineSeconds=1), "Failed")
    assert status["reason"] == "DeadlineExceeded"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_pods_run_as_users_of_their_own_and_never_as_root(bench: Any) -> None:
    script = "id -u; id -G; test -r /proc/1/environ && echo reads-root; ls $HOME/../../uid-one 2>&1 | head -1"
    bench.assign(bench.pod("one", "sh", "-c", script), bench.pod("two", "sh", "-c", script))
    await bench.upstream.phase("uid-one", "Succeeded")
    await bench.upstream.phase("uid-two", "Succeeded")
    first, second = (await bench.log("uid-one")).split("\n"), (await bench.log("uid-two")).split("\n")
    assert (first[0], second[0]) == ("60000", "60001")
    assert "reads-root" not in first and "Permission denied" in second[2]
    asked = bench.pod("root", "id", securityContext={"runAsUser": 0})
    assert (await bench.run(asked, "Failed"))["reason"] == "RunAsUserRefused"
    bench.assign(bench.pod("other", "id", "-u", securityContext={"runAsUser": 4321}))
    await bench.upstream.phase("uid-other", "Succeeded")
    assert await bench.log("uid-other") == "4321\n"


async def test_logs_are_rotated_tailed_and_followed(bench_with: Any) -> None:
    async with bench_with(log_bytes=10_000) as bench:
        script = (
            "i=0; while test $i -lt 3000; do i=$((i+1)); echo line-$i; done; sleep 0.3; echo end; sleep 0.2; echo last"
        )
        await bench.run(bench.pod("log", "sh", "-c", script), "Running")
        await bench.until_log("uid-log", "end")
        tail = b"".join([chunk async for chunk in bench.told("uid-log", tail=2)])
        assert tail.splitlines()[-1] in (b"end", b"last")
        followed = [chunk async for chunk in bench.told("uid-log", tail=1, follow=True)]
        assert b"".join(followed).endswith(b"last\n")
        files = sorted(file.name for file in (bench.settings.data_dir / "logs/default_log_uid-log").iterdir())
        assert "main.log.1" in files and len([file for file in files if not file.endswith(".times")]) <= 3
        with pytest.raises(LookupError, match="no log of container 'none'"):
            await anext(bench.told("uid-log", "none"))


async def test_a_pod_that_ends_with_its_node_has_failed_for_that_reason(bench: Any) -> None:
    """Whatever its restart policy: the next agent does not start it again, its owner makes another."""
    asked = bench.pod("served", "sleep", "60", restartPolicy="Always")
    await bench.run(asked, "Running")
    await bench.agent.drain()
    status = await bench.upstream.phase("uid-served", "Failed")
    assert status["reason"] == "NodeShutdown"
    await bench.stop()
    await bench.start()
    bench.assign(asked)
    status = await bench.upstream.phase("uid-served", "Failed")
    assert status["reason"] == "NodeShutdown" and not bench.leftovers("sleep 60")
