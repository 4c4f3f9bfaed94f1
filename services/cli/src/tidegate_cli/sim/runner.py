"""Running many scenarios, one after the other or in several processes, and telling how they ended."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testing.scenarios import OpenTarget, ScenarioError, load_scenario, scenario_files
from testing.scenarios.report import as_json, closing, line
from testing.scenarios.run import Result, run_scenario


@dataclass(frozen=True, slots=True)
class SimOptions:
    """What ``tidegate sim`` is asked for. ``jobs`` is how many processes run at once."""

    paths: tuple[Path, ...]
    jobs: int = 1
    json: bool = False
    seed: int = 0


def simulate(options: SimOptions, open_target: OpenTarget, write: Callable[[str], None]) -> int:
    """Run every scenario below the paths and write how each ended; 0 when all passed, else 1.

    ``open_target`` has to be a function of a module where ``jobs`` is above one, so that other processes find it.
    """
    try:
        files = scenario_files(options.paths)
    except ScenarioError as error:
        write(str(error))
        return 1
    results = []
    for result in run_files(files, open_target, options.jobs, options.seed):
        results.append(result)
        if not options.json:
            write(line(result))
    write(as_json(results) if options.json else closing(results))
    return 0 if results and all(result.passed for result in results) else 1


def run_files(files: Iterable[Path], open_target: OpenTarget, jobs: int, seed: int) -> Iterator[Result]:
    """The result of every file, in the order of the files, whichever process ran it."""
    run = partial(run_file, open_target=open_target, seed=seed)
    if jobs <= 1:
        yield from map(run, files)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, files)


def run_file(file: Path, open_target: OpenTarget, seed: int) -> Result:
    """The result of one file; one that cannot be read has failed before its first step."""
    try:
        scenario = load_scenario(file)
    except ScenarioError as error:
        return Result(file.parent.name, file.stem, False, 0, "load", "a scenario", str(error))
    return run_scenario(scenario, open_target, seed)
