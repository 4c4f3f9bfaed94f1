"""Puts the programs of programs/ into the manifests whose ConfigMaps name them: `python examples/embed.py`.

A manifest has to work by itself, on Kubernetes too, so it carries its program; the program has to be readable, so it lives
in a file of its own. `--check` only says which manifests are behind, and fails if any is.
"""

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
_BLOCK = re.compile(r"^(?P<indent> +)(?P<program>\w+\.py): \|\n(?:(?P=indent)  .*\n| *\n)*", re.MULTILINE)


def embedded(manifest: str, programs: Path) -> str:
    """``manifest`` with every `NAME.py: |` filled with the program of that name."""

    def fill(block: re.Match[str]) -> str:
        indent = block["indent"]
        lines = (programs / block["program"]).read_text().splitlines()
        body = "".join(f"{indent}  {line}\n" if line else "\n" for line in lines)
        return f"{indent}{block['program']}: |\n{body}"

    return _BLOCK.sub(fill, manifest)


def main(check: bool) -> int:
    """Bring all manifests up to date, or with ``check`` list those that are not."""
    behind = 0
    for file in sorted(FOLDER.glob("*.yaml")):
        text = file.read_text()
        fresh = embedded(text, FOLDER / "programs")
        if fresh != text:
            behind += 1
            print(f"{file.name} {'is behind its program' if check else 'brought up to date'}")
            if not check:
                file.write_text(fresh)
    return 1 if check and behind else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
