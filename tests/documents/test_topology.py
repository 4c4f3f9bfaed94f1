"""`deploy/topology` says what the bus declares, and what a server then has."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from generate import ROOT
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StorageType, StreamConfig

from bus import Parked, topology
from bus.jetstream import JetStreamBus
from bus.jetstream_log import SNAPSHOTS_KEPT
from bus.server import ServerSettings, command, free_port, wait_until_open
from tidegate import subjects
from tidegate.services import DECIDERS

FOLDER = ROOT / "deploy" / "topology"
STREAMS = yaml.safe_load((FOLDER / "streams.yaml").read_text())
BUCKETS = yaml.safe_load((FOLDER / "buckets.yaml").read_text())["buckets"]
LOGS = [subjects.FACTS, *map(subjects.decisions, DECIDERS)]


def _declared() -> list[StreamConfig]:
    return [
        spec.config() for spec in (*map(topology.stream_of_log, LOGS), topology.LAST_VALUES, topology.DEAD_MESSAGES)
    ]


def _written(config: StreamConfig) -> dict[str, Any]:
    """A stream in the words of the document."""
    assert config.storage and config.retention
    return {
        "name": config.name,
        "subjects": config.subjects,
        "messages_per_subject": config.max_msgs_per_subject,
        "max_bytes": config.max_bytes,
        "max_age_seconds": int(config.max_age or 0),
        "storage": StorageType(config.storage).value,
        "retention": RetentionPolicy(config.retention).value,
        "allow_atomic": config.allow_atomic,
        "allow_direct": config.allow_direct,
        "duplicate_window_seconds": int(config.duplicate_window or 0),
        "replicas": config.num_replicas,
    }


def _in_the_document() -> dict[str, dict[str, Any]]:
    streams = [{**STREAMS["common"], **stream} for stream in STREAMS["streams"]]
    return {stream["name"]: {key: value for key, value in stream.items() if key != "log"} for stream in streams}


def test_the_document_has_the_streams_that_the_code_declares() -> None:
    assert _in_the_document() == {str(config.name): _written(config) for config in _declared()}


def test_the_document_names_the_log_behind_each_stream() -> None:
    named = {stream["log"]: stream["name"] for stream in STREAMS["streams"] if "log" in stream}
    assert named == {log: topology.stream_of_log(log).name for log in LOGS}


def test_the_document_has_the_buckets_that_the_code_declares() -> None:
    assert [bucket["name"] for bucket in BUCKETS] == [topology.LEASES, topology.SNAPSHOTS]
    assert BUCKETS[1]["kept_per_log"] == SNAPSHOTS_KEPT


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerSettings]:
    settings = ServerSettings(tmp_path, free_port(), "secret")
    process = await asyncio.create_subprocess_exec(
        *command(settings), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    await wait_until_open(settings.host, settings.port)
    yield settings
    process.kill()
    await process.wait()


@pytest.mark.system
async def test_a_server_has_what_the_document_says(server: ServerSettings) -> None:
    """After every log has been written, a lease taken and a snapshot made: nothing less and nothing more."""
    bus = await JetStreamBus.connect(server.url, "topology", token="secret")
    for log in LOGS:
        await bus.log(log).append(b"first", expected=0, message_id=log)
    await bus.log(subjects.FACTS).put_snapshot(1, b"state")
    await bus.set_value(subjects.assignment("n"), b"nothing")
    await bus.park(Parked(0, "any", "", "error", b""))
    lease = await bus.lease("cluster_gateway", "only")
    await lease.wait()
    client = await nats.connect(server.url, token="secret")
    found = await _streams(client.jetstream())
    await lease.release()
    await client.close()
    await bus.close()
    beside = {bucket["stream"] for bucket in BUCKETS}
    assert {name: _written(config) for name, config in found.items() if name not in beside} == _in_the_document()
    assert found.keys() >= beside
    for bucket in BUCKETS:
        if bucket["kind"] == "key-value":
            config = found[bucket["stream"]]
            assert (config.max_msgs_per_subject, config.allow_msg_ttl) == (bucket["history"], bucket["messages_expire"])


async def _streams(js: JetStreamContext) -> dict[str, StreamConfig]:
    return {str(info.config.name): info.config for info in await js.streams_info()}
