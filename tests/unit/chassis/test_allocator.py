"""The allocator keeps what is freed: a large vector that comes again costs no fresh pages."""

import subprocess
import sys

FAULTS = """
import resource, sys
import numpy as np
from chassis.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
np.ones(3_000_000).sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(3_000_000).sum()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True, text=True)
    return int(done.stdout)


def test_vectors_that_come_again_cost_no_fresh_pages() -> None:
    kept, given_back = faults("keep"), faults("leave")
    assert kept < 1_000
    assert given_back >= kept
