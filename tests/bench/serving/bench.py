"""`python -m tests.bench serving`: Triton behind the gateway, a day and spikes in four minutes, replicas from 1 to 4, to 0 and back.

All is real: `tidegate up`, the processes of Triton, the proxy, the clients' connections. The model waits, 50 ms in each of two instances
of a replica, and computes nothing: two cores bear four replicas of it, and how many are needed is a matter of time as it is with
accelerators. Two windows are shorter than usual: the load is averaged over 12 seconds, the last replica is kept for 6.
"""

import asyncio
import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from tests.bench.autoscaling.serving_pictures import ServingRun, draw_run
from tests.bench.figures import Figure, at_least, at_most, percentile
from tests.bench.running_system import System, running
from tests.bench.serving.client import Answer, Client
from tests.bench.serving.curves import DAY, END, RAMP, SILENCE, arrivals, is_ramp
from tests.bench.serving.observer import Look, Observer

from kube import Manifest
from node_agent.environments import is_installed
from node_agent.program_list import default_folder, read_list
from tidegate_cli.supervisor import endpoint
from tidegate_cli.supervisor.service_settings import ServiceSetting

EXAMPLES = Path(__file__).parents[3] / "examples" / "serving"
NAME, HOST, PATH = "pause", "pause.default.example.com", "/v2/models/pause/infer"
BODY = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.0]}]}).encode()
INSTANCES, THRESHOLD, TARGET_MS = 2, 70.0, 300.0
START_SECONDS = 90.0
IDLE = ServiceSetting("inference_autoscaler", "knative", json.dumps({"scale-to-zero-grace-period": "6s"}))


async def serving(pictures: Path | None = None) -> list[Figure]:
    """The whole run; takes four minutes."""
    if not is_installed(default_folder() / "triton", read_list(None).environments["triton"]):
        print("skipped: Triton is not installed here: tidegate install triton")
        return []
    with _models() as models:
        async with running(service_settings=(IDLE,)) as system:
            await system.apply(system.request(_manifests(models)))
            observer = Observer(system, NAME, INSTANCES)
            await _until_one_serves(observer)
            answers = await _load(system, observer)
    if pictures is not None:
        title = "Triton behind the gateway, in real time"
        draw_run(_run(answers, observer.looks), title, pictures / "serving-case2.png")
    return _figures(answers, observer.looks)


@contextlib.contextmanager
def _models() -> Iterator[Path]:
    """The models of the example, where users of pods can read them."""
    with tempfile.TemporaryDirectory(prefix="tidegate-models-") as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copytree(EXAMPLES / "models", Path(folder) / "models"))


def _manifests(models: Path) -> list[Manifest]:
    found: list[Manifest] = [
        one for file in ("runtimes.yaml", "triton.yaml") for one in yaml.safe_load_all((EXAMPLES / file).read_text())
    ]
    found[-1]["spec"]["predictor"]["model"]["storageUri"] = f"file://{models}"
    return found


async def _until_one_serves(observer: Observer) -> None:
    async with asyncio.timeout(START_SECONDS):
        while not (await observer.look(time.monotonic())).ready:
            await asyncio.sleep(0.2)


async def _load(system: System, observer: Observer) -> list[Answer]:
    found = endpoint.read(system.folder)
    assert found is not None
    client, began = Client(found.requests, HOST, PATH, BODY), time.monotonic()
    watching = asyncio.create_task(observer.run(began))
    try:
        return await client.play(arrivals(seed=1), began)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        client.close()


def _run(answers: Sequence[Answer], looks: Sequence[Look]) -> ServingRun:
    counts = [0] * (int(END) + 1)
    for one in answers:
        counts[int(one.due)] += 1
    return ServingRun(
        [one.second for one in looks],
        [float(counts[min(int(one.second), len(counts) - 1)]) for one in looks],
        [100 * one.busy for one in looks],
        [one.wanted for one in looks],
        [one.ready for one in looks],
        THRESHOLD,
    )


def _figures(answers: Sequence[Answer], looks: Sequence[Look]) -> list[Figure]:
    lost = sum(one.status != 200 for one in answers)
    day_ms = [1000 * one.seconds for one in answers if one.due < DAY]
    steady = [1000 * one.seconds for one in answers if one.due >= DAY and not is_ramp(one.due)]
    ramps = [1000 * one.seconds for one in answers if is_ramp(one.due)]
    day = [one.ready for one in looks if one.second < DAY]
    silence = [one.ready for one in looks if DAY <= one.second < DAY + SILENCE]
    woken = [one.ready for one in looks if one.second >= DAY + SILENCE]
    awake = [100 * one.busy for one in looks if one.ready]
    first = next(one for one in answers if one.due >= DAY + SILENCE)
    return [
        at_most(f"serving: requests lost of {len(answers):,}", lost, "", 0),
        at_most("serving: p95 of the day", percentile(day_ms, 95), "ms", TARGET_MS, "a request alone takes 50 ms"),
        at_most("serving: p95 in and between spikes, after their ramps", percentile(steady, 95), "ms", TARGET_MS),
        Figure(f"serving: p95 in the ramps, {RAMP:.0f} s each", percentile(ramps, 95), "ms"),
        at_least("serving: most replicas in the day", max(day), "", 3, f"it began with {day[0]}"),
        at_most("serving: replicas after the silence", silence[-1], "", 0),
        at_least("serving: most replicas in the spikes", max(woken), "", 3),
        Figure("serving: the request that woke it", 1000 * first.seconds, "ms"),
        Figure("serving: instances busy while any serve", sum(awake) / len(awake), "%"),
    ]
