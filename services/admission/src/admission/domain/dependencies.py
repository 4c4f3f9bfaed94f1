"""Who waits for whom: names that have to be there, and no circle among them."""

from collections.abc import Iterable, Mapping, Sequence

from admission.domain.errors import FieldError


def check_dependencies(paths: Mapping[str, str], needs: Mapping[str, Sequence[str]], what: str) -> Iterable[FieldError]:
    """``needs`` holds for each name those it depends on; ``paths`` where it says so. ``what`` is one of them, in words."""
    sound = True
    for name, targets in needs.items():
        for target in targets:
            if target not in needs:
                sound = False
                yield FieldError(
                    paths[name], target, f"depends on {what} {target}, which does not exist; add or drop it"
                )
    if not sound:
        return
    circle = find_circle(needs)
    if circle:
        chain = " → ".join([*circle, circle[0]])
        yield FieldError(paths[circle[0]], circle[0], f"the dependencies make a cycle ({chain}); break it")


def find_circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Names that depend on each other in a circle, in order; empty where there is none."""
    left = {name: set(targets) for name, targets in needs.items()}
    while True:
        free = [name for name, targets in left.items() if not targets & left.keys()]
        if not free:
            break
        for name in free:
            del left[name]
    if not left:
        return []
    path: list[str] = []
    name = min(left)
    while name not in path:
        path.append(name)
        name = min(left[name] & left.keys())
    return path[path.index(name) :]
