"""The program: ``storage_initializer SOURCE FOLDER [SOURCE FOLDER ...]``, as KServe's storage initializer is started.

A source is ``file://``, ``s3://``, ``hf://``, ``http://`` or ``https://``. It ends with 0 when all of them are in their folders,
else with 1 and a line that says why. What it is let in by comes as variables: those that KServe makes of Secrets.
"""

import sys
import time
from pathlib import Path

from storage_initializer.failures import FetchError
from storage_initializer.fetching import fetch


def main(words: list[str]) -> int:
    """Fetch each source into its folder; the exit code."""
    if not words or len(words) % 2:
        return _fail("usage: storage_initializer SOURCE FOLDER [SOURCE FOLDER ...]")
    for uri, folder in zip(words[::2], words[1::2], strict=True):
        began = time.monotonic()
        try:
            fetch(uri, Path(folder))
        except FetchError as error:
            return _fail(str(error))
        except OSError as error:
            return _fail(f"{uri}: {error}")
        print(f"{uri} is in {folder} after {time.monotonic() - began:.1f} s")
    return 0


def _fail(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
