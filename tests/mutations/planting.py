"""Plants mutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_TESTS, MOST_SECONDS = 300, 600.0


def by_nearness(tests: Mapping[str, float], module: str) -> list[str]:
    """Return tests, those of the module's own room and of quick files first, as many as are run for a mutation."""
    files: dict[str, list[float]] = {}
    for test, seconds in tests.items():
        files.setdefault(test.partition("::")[0], []).append(seconds)

    def rank(test: str) -> tuple[int, float, str, float]:
        file = test.partition("::")[0]
        return -shared(file, module), sum(files[file]) / len(files[file]), file, tests[test]

    taken, spent = [], 0.0
    for test in sorted(tests, key=rank)[:MOST_TESTS]:
        spent += tests[test]
        if taken and spent > MOST_SECONDS:
            break
        taken.append(test)
    return taken


def shared(file: str, module: str) -> int:
    """Count the folders that a file of tests has in common with a module."""
    theirs = file.split("/")[1:-1]
    ours = [part for part in module.split("/") if part not in ("python", "src", "holdpoint")]
    return next(
        (n for n, pair in enumerate(zip(theirs, ours, strict=False)) if pair[0] != pair[1]), min(len(theirs), len(ours))
    )


def plant(numbers: Sequence[int]) -> int:
    return 0
