"""What a pod sees of the machine and of its peers, and what it may use of it."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from kube import merge

WAIT_FOR = "while ! grep -q {word} {file} 2>/dev/null; do sleep 0.02; done; echo seen"


def needs_namespaces(bench: Any) -> None:
    if not bench.running.isolation.namespaces:
        pytest.skip(f"no mount namespaces here: {bench.running.isolation.why_no_namespaces}")


async def test_volumes_are_at_their_mount_paths_though_the_machine_has_no_such_folders(bench: Any) -> None:
    needs_namespaces(bench)
    bench.upstream.secrets["default/key"] = {"id_rsa": b"private"}
    volumes = [
        {"name": "code", "configMap": {"name": "code", "items": [{"key": "main", "path": "deep/main.sh"}]}},
        {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o600}},
        {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]
    mounts = [
        {"name": "code", "mountPath": "/no-such-root/app"},
        {"name": "key", "mountPath": "/etc/tidegate-test/ssh", "readOnly": True},
        {"name": "info", "mountPath": "/etc/podinfo"},
        {"name": "scratch", "mountPath": "/scratch/part", "subPath": "a/b"},
        {"name": "code", "mountPath": "/usr/share/tidegate-main.sh", "subPath": "deep/main.sh"},
    ]
    script = """
        sh /no-such-root/app/deep/main.sh; cat /usr/share/tidegate-main.sh; stat -Lc %a:%u /etc/tidegate-test/ssh/id_rsa
        cat /etc/tidegate-test/ssh/id_rsa; echo; cat /etc/podinfo/labels; echo
        echo x > /scratch/part/file && echo written; echo x 2>&- > /etc/tidegate-test/ssh/new || echo read-only
        test -d /etc/ssl && test -d /usr/share/doc && test -d /proc/self && echo rest; pwd
    """
    asked = bench.pod(
        "vol", "sh", "-c", script, volumes=volumes, metadata={"labels": {"app": "x"}},
        container={"volumeMounts": mounts, "workingDir": "/workspace"},
    )  # fmt: skip
    await bench.run(asked, "Succeeded", config_maps={"default/code": {"main": "echo hello"}})
    said = (await bench.log("uid-vol")).split("\n")
    user = 60000 if os.geteuid() == 0 else os.geteuid()
    assert said[0] == "hello" and said[1].startswith("echo hello")
    assert said[1:5] == [f"echo hello600:{user}", "private", 'app="x"', "written"]
    assert said[-4:] == ["read-only", "rest", "/workspace", ""]
    assert (bench.settings.data_dir / "pods/uid-vol/volumes/scratch/a/b/file").exists()
    made = (
        "/no-such-root",
        "/etc/tidegate-test",
        "/etc/podinfo",
        "/scratch",
        "/workspace",
        "/usr/share/tidegate-main.sh",
    )
    assert [path for path in made if os.path.lexists(path)] == [], "the machine itself stays as it was"  # noqa: ASYNC240


async def test_a_sub_path_that_leads_out_of_its_volume_is_refused(bench: Any) -> None:
    needs_namespaces(bench)
    init = [
        {
            "name": "trick",
            "command": ["sh", "-c", "ln -s /root /vol/out"],
            "volumeMounts": [{"name": "v", "mountPath": "/vol"}],
        }
    ]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/mnt/out", "subPath": "out"}]}
    asked = bench.pod("trick", "true", volumes=[{"name": "v", "emptyDir": {}}], initContainers=init, container=mounts)
    await bench.run(asked, "Failed")
    assert "leads out of the volume" in bench.upstream.container("uid-trick")["state"]["terminated"]["message"]


async def test_a_running_process_sees_a_changed_config_map_and_new_names(bench: Any) -> None:
    needs_namespaces(bench)
    script = f"""
        echo first $(cat /conf/value); {WAIT_FOR.format(word="two", file="/conf/value")}
        {WAIT_FOR.format(word="late-peer", file="/etc/hosts")}; getent hosts late-peer.svc
        python -c "import socket; print(socket.gethostbyname('late-peer'), socket.gethostname())"
    """
    volumes = [{"name": "conf", "configMap": {"name": "conf"}}]
    mounts = {"volumeMounts": [{"name": "conf", "mountPath": "/conf"}]}
    asked = bench.pod("watch", "sh", "-c", script, volumes=volumes, container=mounts, hostname="worker-0")
    bench.assign(asked, config_maps={"default/conf": {"value": "one"}})
    await bench.until_log("uid-watch", "first one")
    bench.assign(asked, config_maps={"default/conf": {"value": "two"}})
    await bench.until_log("uid-watch", "seen")
    bench.assign(
        asked,
        config_maps={"default/conf": {"value": "two"}},
        hosts={"default": (("127.20.0.9", ("late-peer", "late-peer.svc")),)},
    )
    await bench.upstream.phase("uid-watch", "Succeeded")
    assert (await bench.log("uid-watch")).splitlines()[-2:] == [
        "127.20.0.9      late-peer late-peer.svc",
        "127.20.0.9 worker-0",
    ]


async def test_containers_share_an_empty_folder_and_it_goes_with_the_pod(bench: Any) -> None:
    needs_namespaces(bench)
    mounts = [{"name": "s", "mountPath": "/shared"}]
    writer = {"name": "w", "command": ["sh", "-c", "echo from-init > /shared/f"], "volumeMounts": mounts}
    asked = bench.pod(
        "share", "cat", "/shared/f", initContainers=[writer], volumes=[{"name": "s", "emptyDir": {}}],
        container={"volumeMounts": mounts, "securityContext": {"runAsUser": 7777}},
    )  # fmt: skip
    await bench.run(asked, "Succeeded")
    assert await bench.log("uid-share") == "from-init\n"
    bench.assign()
    await bench.upstream.until(lambda: "uid-share" in bench.upstream.gone)
    assert not (bench.settings.data_dir / "pods/uid-share").exists()


async def test_containers_share_memory_with_each_other_and_not_with_the_machine_and_it_goes_with_the_pod(
    bench: Any,
) -> None:
    """A server that is killed leaves what it has there."""
    needs_namespaces(bench)
    name = f"tidegate-test-{os.getpid()}"
    first = {"name": "first", "command": ["sh", "-c", f"echo mine > /dev/shm/{name}; kill -KILL $$$$"]}
    seen = WAIT_FOR.format(word="mine", file=f"/dev/shm/{name}")
    pod = bench.pod("shares", "sh", "-c", f"{seen}; while true; do sleep 0.1; done")
    pod["spec"]["containers"].append(first)
    bench.assign(pod)
    await bench.until_log("uid-shares", "seen")
    assert len(shared(name)) == 1 and shared(f"../{name}") == []
    bench.assign()
    await bench.upstream.until(lambda: "uid-shares" in bench.upstream.gone)
    assert shared(name) == []


def shared(name: str) -> list[Path]:
    """Where shared memory of pods has a file of that name."""
    return [*Path("/dev/shm").glob(f"*/{name}")]


async def test_a_claim_outlives_its_pods(bench: Any) -> None:
    needs_namespaces(bench)
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/data"}]}
    await bench.run(bench.pod("w", "sh", "-c", "echo kept > /data/f", volumes=volumes, container=mounts), "Succeeded")
    await bench.run(bench.pod("r", "cat", "/data/f", volumes=volumes, container=mounts), "Succeeded")
    assert await bench.log("uid-r") == "kept\n"


async def test_a_missing_host_folder_is_said(bench: Any) -> None:
    volumes = [{"name": "h", "hostPath": {"path": "/no/such/folder"}}]
    bench.assign(bench.pod("h", "true", volumes=volumes))
    await bench.upstream.until(lambda: "uid-h" in bench.upstream.statuses)
    waiting = bench.upstream.container("uid-h")["state"]["waiting"]
    if waiting["reason"] != "FailedMount":
        await bench.upstream.until(
            lambda: bench.upstream.container("uid-h")["state"]["waiting"]["reason"] == "FailedMount"
        )
    assert "/no/such/folder" in bench.upstream.container("uid-h")["state"]["waiting"]["message"]


def cgroups_of(bench: Any) -> Any:
    found = bench.running.isolation.cgroups
    if not found.version:
        pytest.skip(f"no control groups here: {found.why}")
    return found


async def test_a_container_that_uses_more_memory_than_its_limit_is_killed_and_said_so(bench: Any) -> None:
    cgroups_of(bench)
    eat = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    container = {"resources": {"limits": {"memory": "48Mi"}}}
    await bench.run(bench.pod("oom", "python", "-c", eat, container=container), "Failed")
    ended = bench.upstream.container("uid-oom")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


async def test_limits_are_in_force_while_the_pod_runs_and_leave_nothing_behind(bench: Any) -> None:
    cgroups = cgroups_of(bench)
    resources = {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m", "memory": "64Mi"}}
    await bench.run(bench.pod("lim", "sleep", "1000", container={"resources": resources}), "Running")
    folders = cgroups.hierarchy.folders("uid-lim/main")
    written = {
        file.name: file.read_text().strip() for folder in folders for file in folder.iterdir() if _readable(file)
    }
    if cgroups.version == 1:
        assert (written["cpu.cfs_quota_us"], written["cpu.shares"]) == ("50000", "256")
        assert written["memory.limit_in_bytes"] == str(64 << 20)
    else:
        assert (written["cpu.max"], written["memory.max"]) == ("50000 100000", str(64 << 20))
    pid = bench.running._workers["uid-lim"].record.containers["main"].process.pid
    assert str(pid) in written["cgroup.procs"].split()
    bench.assign()
    await bench.upstream.until(lambda: "uid-lim" in bench.upstream.gone)
    assert not any(folder.exists() for folder in [*folders, *cgroups.hierarchy.folders("uid-lim")])


async def test_cpu_time_is_held_to_its_quota_and_measured(bench: Any) -> None:
    cgroups_of(bench)
    container = {"resources": {"limits": {"cpu": "200m"}}}
    bench.assign(bench.pod("busy", "python", "-c", "while True: pass", container=container))

    def samples() -> list[Any]:
        return [one for report in bench.upstream.reports for one in report.usage if one.uid == "uid-busy"]

    def used() -> float:
        """CPU time in milliseconds, by the process itself."""
        times = process.cpu_times()
        return 1000 * float(times.user + times.system)

    await bench.upstream.until(lambda: len(samples()) >= 2)
    process = psutil.Process(bench.running._workers["uid-busy"].record.containers["main"].process.pid)
    before, began, first = used(), time.monotonic(), len(samples())
    await bench.upstream.until(lambda: len(samples()) >= first + 10)
    rate = (used() - before) / (time.monotonic() - began)
    measured = [one.cpu_milli for one in samples()[first:]]
    # On a busy machine it gets less than its quota.
    assert 0.5 * rate <= sum(measured) / len(measured) <= 300
    assert 0 < rate <= 300
    assert samples()[-1].memory_bytes > 1 << 20
    assert any(
        one.uid == "" and one.memory_bytes > 1 << 20 for report in bench.upstream.reports for one in report.usage
    )
    assert {one.uid for one in bench.running.usage()} == {"", "uid-busy", "uid-busy/main"}


async def test_without_namespaces_and_groups_pods_still_run_and_it_is_said(bench_with: Any) -> None:
    async with bench_with(isolate=False, enforce=False) as bench:
        script = """
            cat $TIDEGATE_VOLUME_MY_CONF/value; echo; ls -d /conf 2>&1 | grep -c No
            python3 -c "import socket; print(socket.gethostbyname('peer'), socket.create_connection)"
        """
        volumes = [{"name": "my-conf", "configMap": {"name": "conf"}}]
        container = {
            "volumeMounts": [{"name": "my-conf", "mountPath": "/conf"}],
            "resources": {"limits": {"memory": "1Gi"}},
            # Without a namespace a Python below a closed home cannot be shown to the pod's user: take the machine's.
            "env": [{"name": "PATH", "value": "/usr/bin:/bin"}],
        }
        asked = bench.pod("plain", "sh", "-c", script, volumes=volumes, container=container)
        names = {"default": (("127.20.0.7", ("peer",)),)}
        status = await bench.run(asked, "Succeeded", config_maps={"default/conf": {"value": "here"}}, hosts=names)
        said = (await bench.log("uid-plain")).splitlines()
        assert said[0] == "here" and said[2].startswith("127.20.0.7 ")
        conditions = {item["type"]: item["message"] for item in status["conditions"]}
        assert "TIDEGATE_VOLUME_" in conditions["tidegate.dev/MountsInForce"]
        assert "switched off" in conditions["tidegate.dev/LimitsInForce"]
        annotation = bench.running.inventory.annotations["tidegate.dev/isolation"]
        assert "switched off (isolate)" in annotation and "switched off (enforce)" in annotation


async def test_usage_is_measured_without_control_groups_too(bench_with: Any) -> None:
    async with bench_with(enforce=False) as bench:
        await bench.run(bench.pod("u", "python", "-c", "while True: pass"), "Running")
        await bench.upstream.until(
            lambda: any(one.uid == "uid-u" and one.cpu_milli > 0 for one in bench.running.usage())
        )


async def test_an_idle_node_costs_next_to_nothing(bench_with: Any) -> None:
    """No look at processes, no probe, no report: only the check of the logs, every two seconds."""
    async with bench_with(log_check_ms=60_000) as bench:
        bench.assign(*[bench.pod(f"i{number}", "sleep", "1000") for number in range(3)])
        for number in range(3):
            await bench.upstream.phase(f"uid-i{number}", "Running")
        await asyncio.sleep(0.05)
        turns, loop = [], asyncio.get_running_loop()
        original = loop._run_once  # type: ignore[attr-defined]
        loop._run_once = lambda: (turns.append(1), original())  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
        loop._run_once = original  # type: ignore[attr-defined]
        assert len(turns) <= 3


async def test_a_deletion_is_not_undone_by_the_next_assignment(bench: Any) -> None:
    asked = bench.pod("d", "sleep", "1000")
    await bench.run(asked, "Running")
    deleted = merge(asked, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}})
    bench.assign(deleted)
    await bench.upstream.until(lambda: "uid-d" in bench.upstream.gone)
    bench.assign(deleted)
    assert bench.leftovers("sleep") == []


def _readable(file: Path) -> bool:
    return file.name in (
        "cpu.cfs_quota_us",
        "cpu.shares",
        "memory.limit_in_bytes",
        "cpu.max",
        "memory.max",
        "cgroup.procs",
    )
