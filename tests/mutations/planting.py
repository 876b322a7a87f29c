"""Plants mutations one by one in copies of the last commit and runs the tests that reach each, the nearest first."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from tests.mutations import copies, listed
from tests.mutations.listed import Mutation
from tests.mutations.sites import Gone

MOST_TESTS, MOST_SECONDS = 300, 600.0  # that are run for a mutation
PATIENCE = 600.0  # seconds without the end of a test: it hangs
AT_ONCE = 2
PASSED = (0, 5)  # exit codes of pytest: no test failed; there was none
HUNG, START = "a time limit", "the start of the tests"
KEY = "from tests.harness.session import key; print(key())"
CLIENT = ("clients/python/src/holdpoint", "clients")  # its folders, and those of its tests


def sort_by_nearness(tests: Mapping[str, float], module: str) -> list[str]:
    """Return tests, those of the module's own room and of quick files first, as many as are run for a mutation."""
    files: dict[str, list[float]] = {}
    for test, seconds in tests.items():
        files.setdefault(test.partition("::")[0], []).append(seconds)

    def rank(test: str) -> tuple[int, float, str, float]:
        file = test.partition("::")[0]
        return -count_shared(file, module), sum(files[file]) / len(files[file]), file, tests[test]

    taken, spent = list[str](), 0.0
    for test in sorted(tests, key=rank)[:MOST_TESTS]:
        spent += tests[test]
        if taken and spent > MOST_SECONDS:
            break
        taken.append(test)
    return taken


def count_shared(file: str, module: str) -> int:
    """Count the folders that a file of tests has in common with a module."""
    theirs, ours = Path(file).parts[1:-1], Path(module.replace(*CLIENT)).parts[:-1]
    count = 0
    while count < min(len(theirs), len(ours)) and theirs[count] == ours[count]:
        count += 1
    return count


def find_room(module: str, root: Path) -> str:
    """Return the folder of tests that has most of its path in common with a module."""
    folder = root / "tests" / Path(module.replace(*CLIENT)).parent
    while not folder.exists():
        folder = folder.parent
    return str(folder.relative_to(root))


def plant(numbers: Sequence[int], reached: Mapping[str, Sequence[str]], logs: Path) -> int:
    """Plant these mutations, or all but those that are known to escape, and keep what catches each.

    Returns an exit code: 1 where a mutation that was caught escapes now, or where its place is gone.
    """
    mutations, worse = listed.read(), False
    chosen = [mutation for mutation in mutations if not mutation.gone]
    chosen = [mutation for mutation in chosen if (mutation.number in numbers if numbers else not mutation.escaped)]
    with ExitStack() as stack:
        roots = SimpleQueue[Path]()
        for _ in range(AT_ONCE):
            roots.put(stack.enter_context(copies.copied()))
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        trials = {pool.submit(_try, mutation, roots, reached, logs): mutation for mutation in chosen}
        for trial in as_completed(trials):
            mutation, before = trials[trial], trials[trial].caught_by
            try:
                caught_by = trial.result()
            except Gone as gone:
                sys.stdout.write(f"{mutation.number} is gone: {gone}\n")
                worse = True
                continue
            sys.stdout.write(f"{mutation.number}: {caught_by or 'ESCAPES'}{f' (was: {before})' if before else ''}\n")
            sys.stdout.flush()
            worse = worse or bool(before and not caught_by)
            if caught_by or not before:
                mutation.caught_by, mutation.escaped = caught_by, not caught_by
                listed.write(mutations)
    return int(worse)


def _try(mutation: Mutation, roots: SimpleQueue[Path], reached: Mapping[str, Sequence[str]], logs: Path) -> str:
    root = roots.get()
    try:
        return catch(mutation, root, reached.get(str(mutation.number), ()), logs)
    finally:
        roots.put(root)


def catch(mutation: Mutation, root: Path, reached: Sequence[str], logs: Path) -> str:
    """Return what catches a mutation in a copy: a test, HUNG or START; "" where all pass. Raises Gone.

    The test that caught it before is run first, then those that `reached` names, the files of the list, or the room's.
    """
    source = mutation.write(root, mutation.after)
    try:
        _reuse_migrated(root, mutation)
        for names in ([mutation.caught_by], [*reached] or mutation.reached_by or [find_room(mutation.module, root)]):
            present = [name for name in names if name and (root / name.partition("::")[0]).exists()]
            failed = _find_failing(present, root, logs / str(mutation.number)) if present else ""
            if failed:
                return failed
        return ""
    finally:
        (root / mutation.module).write_text(source)
        if mutation.migrates:
            shutil.rmtree(root / copies.MIGRATED, ignore_errors=True)


def _reuse_migrated(root: Path, mutation: Mutation) -> None:
    """Rename the copy's migrated database to the key that it has with the mutation, unless migrating passes by it."""
    migrated = root / copies.MIGRATED
    if mutation.migrates:
        shutil.rmtree(migrated, ignore_errors=True)
    for folder in migrated.glob("*/"):
        command = [sys.executable, "-c", KEY]
        folder.rename(migrated / subprocess.run(command, cwd=root, check=True, stdout=-1, text=True).stdout.strip())


def _find_failing(names: Sequence[str], root: Path, log: Path) -> str:
    files = list(dict.fromkeys(name.partition("::")[0] for name in names))
    ended = log.with_suffix(".tests")
    code = copies.run_tests(root, ["-x", *files], ended, log.with_suffix(".log"), patience=PATIENCE, wanted=names)
    failed = [name for name, *_, has_failed in map(json.loads, ended.read_text().splitlines()) if has_failed]
    return HUNG if code is None else (failed or [START])[0] if code not in PASSED else ""
