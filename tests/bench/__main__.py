"""`make bench`: every benchmark, one table. Name some (`python -m tests.bench idle`) to run only those."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from tests.bench.bench_job_quality import job_quality
from tests.bench.bench_queues import queues
from tests.bench.end_to_end import real_gangs, simulated
from tests.bench.figures import Figure, show
from tests.bench.idle import idle
from tests.bench.restart import restart
from tests.bench.topology import topology

BENCHMARKS: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
    "gangs": real_gangs,
    "simulated": simulated,
    "restart": restart,
    "idle": idle,
    "topology": topology,
    "queues": queues,
    "job-quality": job_quality,
}


def main() -> None:
    """Run the benchmarks named on the command line, all if none is."""
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise SystemExit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    figures: list[Figure] = []
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        figures += asyncio.run(BENCHMARKS[name]())  # type: ignore[arg-type]
    show(figures)


if __name__ == "__main__":
    main()
