"""The collector and the servers that it is made for: Prometheus of Debian, and NATS with JetStream."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest
from aiohttp import web
from asked_world import World, serving
from debian_programs import NoProgram, program

from bus.server import binary, free_port, free_ports, wait_until_open
from inference_autoscaler.domain.sampling.plan import SamplingPlan
from testing.background import process


@asynccontextmanager
async def prometheus(folder: Path, target: int, port: int) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """A real one that scrapes one target each second."""
    try:
        found = program("prometheus", "usr/bin/prometheus")
    except NoProgram as missing:
        pytest.skip(str(missing))
    jobs = [{"job_name": "tested", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}], "honor_labels": True}]
    configuration = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    flags = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}")
    command = (str(found), *flags, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error")
    with process(command, folder / "prometheus.log") as started:
        await wait_until_open("127.0.0.1", port)
        yield started


class Exporter:
    """What is scraped."""

    text = 'waiting{pod="a",namespace="default"} 4\nwaiting{pod="b",namespace="default"} 3\n'

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=self.text)


async def test_a_real_prometheus_is_asked_and_what_it_lost_is_not_kept(world: World, tmp_path: Path) -> None:
    """A series that its target tells no more is gone at once, though it is not forgotten: Prometheus marks it as stale."""
    exporter, port = Exporter(), free_port()
    async with serving(exporter) as target, prometheus(tmp_path, target, port) as started:
        world.trigger(
            "prometheus", serverAddress=f"http://127.0.0.1:{port}", query='sum(waiting{pod=~"a|b"})', threshold="5"
        )
        await told(world, "7")
        exporter.text = "waiting NaN\n"
        assert "no series" in (await told(world, None))["message"]
        exporter.text = 'waiting{pod="a",namespace="default"} 9\n'
        await told(world, "9")
        started.kill()
        assert "cannot be asked" in (await told(world, None))["message"]


async def test_a_query_that_is_none_is_refused_in_its_words(world: World, tmp_path: Path) -> None:
    port = free_port()
    async with serving(Exporter()) as target, prometheus(tmp_path, target, port):
        world.trigger("prometheus", serverAddress=f"http://127.0.0.1:{port}", query="sum(waiting", threshold="5")
        assert "parse error" in (await told(world, None))["message"]


class TestWithRules:
    """Metrics of pods, by rules as Prometheus' adapter has them."""

    port = free_port()

    @pytest.fixture
    def plan(self) -> SamplingPlan:
        resources = {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}}
        rule = {"seriesQuery": 'waiting{pod!=""}', "resources": resources}
        return SamplingPlan.of({"prometheus": f"http://127.0.0.1:{self.port}", "rules": [rule]})

    async def test_each_pod_has_its_own_value(self, world: World, tmp_path: Path) -> None:
        async with serving(Exporter()) as target, prometheus(tmp_path, target, self.port):
            for name in "abc":
                world.pod(name, 1)
            world.autoscaler("waiting")
            await world.until(lambda: len(world.readings()) == 2)
            found = {one["describedObject"]["name"]: one.get("value") for one in world.readings()}
            assert found == {"a": "4", "b": "3"}

    async def test_the_load_of_the_gpus_of_a_pod_is_known_without_a_rule(self, world: World, tmp_path: Path) -> None:
        """As NVIDIA's exporter tells it, of each card."""
        exporter = Exporter()
        exporter.text = "".join(
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",pod="a",namespace="default"}} {percent}\n'
            for gpu, percent in enumerate((60, 85))
        )
        async with serving(exporter) as target, prometheus(tmp_path, target, self.port):
            world.pod("a", 1)
            world.autoscaler("duty_cycle_current")
            assert (await told(world, "72500m"))["describedObject"] == {"apiVersion": "v1", "kind": "Pod", "name": "a"}


async def test_the_lag_of_a_consumer_is_told_by_a_real_server(world: World, tmp_path: Path) -> None:
    port, monitoring = free_ports(2)
    flags = ("-js", "-sd", str(tmp_path), "-a", "127.0.0.1", "-p", str(port), "-m", str(monitoring))
    with process((binary(), *flags), tmp_path / "nats.log"):
        await wait_until_open("127.0.0.1", port)
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        stream = client.jetstream()
        await stream.add_stream(name="orders", subjects=["orders"])
        consumer = await stream.pull_subscribe("orders", durable="workers", stream="orders")
        for _ in range(5):
            await stream.publish("orders", b"")
        world.trigger(
            "nats-jetstream",
            natsServerMonitoringEndpoint=f"127.0.0.1:{monitoring}",
            account="$G",
            stream="orders",
            consumer="workers",
        )
        await told(world, "5")
        for message in await consumer.fetch(2):
            await message.ack()
        await told(world, "3")
        await stream.delete_consumer("orders", "workers")
        assert "no consumer workers" in (await told(world, None))["message"]
        await client.close()


async def told(world: World, value: str | None) -> dict[str, str]:
    """The one sample once it has this value. Real servers need real time."""

    async def holds() -> dict[str, str]:
        while not (found := [one for one in world.readings() if one.get("value") == value]):
            world.skipped_ms += 400
            await asyncio.sleep(0.1)
        return found[0]

    async with asyncio.timeout(60):
        return await holds()
