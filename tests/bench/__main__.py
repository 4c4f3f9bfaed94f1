"""`make bench`: every benchmark, one table. Name some (`python -m tests.bench idle`) to run only those. A goal that
does not hang on the machine's speed fails the run when it is missed.

`gpu-quality` and `autoscaling` need public traces. The first runs only by name; with `--all` it plays ten shuffles of each of its 17 lists
(an hour).
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.bench.admission import admission
from tests.bench.agent_process import agent_process
from tests.bench.agent_rules import agent_rules
from tests.bench.autoscaler_rounds import autoscaler_rounds
from tests.bench.autoscaling.bench import autoscaling
from tests.bench.autoscaling.traces import are_there
from tests.bench.bench_gpu_quality import gpu_quality
from tests.bench.bench_job_quality import job_quality
from tests.bench.bench_queues import queues
from tests.bench.colocation.day import colocation_day
from tests.bench.colocation.experiment import colocation_experiment
from tests.bench.end_to_end import large, real_gangs, simulated
from tests.bench.figures import Figure, failed, show
from tests.bench.gateway import gateway
from tests.bench.idle import idle
from tests.bench.idle_services import idle_services
from tests.bench.lending import lending
from tests.bench.openb import TRACES
from tests.bench.restart import restart
from tests.bench.scheduling import growth, neighbours, placement, reclaim
from tests.bench.serving.bench import serving
from tests.bench.topology import topology

from chassis.garbage import search_in_steps

BENCHMARKS: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
    "gangs": real_gangs,
    "simulated": simulated,
    "large": large,
    "restart": restart,
    "idle": idle,
    "placement": placement,
    "neighbours": neighbours,
    "reclaim": reclaim,
    "growth": growth,
    "topology": topology,
    "queues": queues,
    "lending": lending,
    "admission": admission,
    "gateway": gateway,
    "autoscaler-rounds": autoscaler_rounds,
    "idle-services": idle_services,
    "agent-rules": agent_rules,
    "agent-process": agent_process,
    "job-quality": job_quality,
    "colocation": colocation_experiment,
    "colocation-day": colocation_day,
    "serving": serving,
}

GPU_QUALITY, AUTOSCALING = "gpu-quality", "autoscaling"


def main() -> None:
    """Run the benchmarks named on the command line, all if none is."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join([*BENCHMARKS, AUTOSCALING, GPU_QUALITY]))
    parser.add_argument("--seeds", type=int, default=1, help="shuffles of each trace (gpu-quality)")
    parser.add_argument("--traces", default="default", help="names with commas between them, or all (gpu-quality)")
    parser.add_argument("--all", action="store_true", help="ten shuffles of every trace (gpu-quality)")
    parser.add_argument(
        "--figures",
        type=Path,
        help="a folder for the pictures that benchmarks draw (colocation-day, autoscaling, serving)",
    )
    options = parser.parse_args()
    traces = TRACES if options.all or options.traces == "all" else tuple(options.traces.split(","))
    known = BENCHMARKS | {
        GPU_QUALITY: lambda: gpu_quality(10 if options.all else options.seeds, traces),
        AUTOSCALING: lambda: autoscaling(options.figures),
        "colocation-day": lambda: colocation_day(options.figures),
        "serving": lambda: serving(options.figures),
    }
    names = options.names or [*BENCHMARKS, *([AUTOSCALING] if are_there() else [])]
    unknown = [name for name in names if name not in known] + [name for name in traces if name not in TRACES]
    if unknown:
        raise SystemExit(f"no benchmark or trace {unknown[0]!r}; there are {', '.join([*known, *TRACES])}")
    search_in_steps()  # As every service does: what runs in this process is to cost what it costs there.
    figures: list[Figure] = []
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        figures += asyncio.run(known[name]())  # type: ignore[arg-type]
    show(figures)
    if failed(figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
