"""Plants mutations one by one in copies of the last commit and runs the tests that reach each, the nearest first."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import accumulate
from math import ceil
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.listed import ROOT, Mutation
from tests.mutations.probing import ENDED, MOST_TESTS, WANTED
from tests.mutations.sites import Gone

LOGS = ROOT / ".pytest_cache" / "mutations"
MOST_SECONDS = 600.0  # of tests that are run for a mutation, beside MOST_TESTS
MOST_FILES = 15  # of tests that are guessed
PATIENCE = 600.0  # seconds without the end of a test: it hangs
PASSED = (0, 5)  # exit codes of pytest: no test failed; there was none
HUNG, START = "a time limit", "the start of the tests"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutations.probing")
MODULES, MIGRATED = Path("clients/typescript/node_modules"), Path(".pytest_cache/kept/migrated")
KEY = "from tests.harness.session import migrated_digest; print(migrated_digest())"
CLIENT = ("clients/python/src/holdpoint", "clients")  # its folders, and those of its tests


def count_shared(file: str, module: str) -> int:
    """Count the folders that a file of tests has in common with a module."""
    return len(Path(os.path.commonpath([file.removeprefix("tests/"), module.replace(*CLIENT)])).parts)


def sort_by_nearness(tests: Mapping[str, float], module: str) -> list[str]:
    """Return tests, those of the module's own room and of quick files first, as many as are run for a mutation."""
    seconds = Counter[str]()
    for test in tests:
        seconds[test.partition("::")[0]] += ceil(tests[test] * 1000)
    files = {file: (-count_shared(file, module), spent, file) for file, spent in seconds.items()}
    nearest = sorted(tests, key=lambda test: (files[test.partition("::")[0]], tests[test]))[:MOST_TESTS]
    ends = accumulate(tests[test] for test in nearest)
    return [test for test, end in zip(nearest, ends, strict=True) if end - tests[test] < MOST_SECONDS]


def guess_files(module: str, root: Path) -> list[str]:
    """Return files of tests for a place that was not probed: first those that import the module, or bear its name."""
    package, _, name = module.removesuffix(".py").removeprefix("clients/python/src/").replace("/", ".").rpartition(".")
    imports = re.compile(rf"from {package} import ([^(\n]*|\([^)]*)\b{name}\b|\b{package}\.{name}\b")
    files = []
    for path in (root / "tests").rglob("test_*.py"):
        file, text = str(path.relative_to(root)), path.read_text()
        near, shared = bool(imports.search(text)) or name in path.stem, count_shared(file, module)
        if near or shared:
            files.append((not (near and shared), -shared, not near, len(text), file))
    return [file for *_, file in sorted(files)[:MOST_FILES]]


@contextmanager
def copied() -> Iterator[Path]:
    """Check the last commit out into a folder that is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        root = Path(folder, "tree")
        _run("git", "worktree", "add", "--quiet", "--detach", root)
        for name in (".venv", ".venv-frameworks"):
            (root / name).symlink_to((ROOT / name).resolve())
        if (ROOT / MODULES).exists():
            _run("cp", "-a", ROOT / MODULES, root / MODULES)
        yield root
    _run("git", "worktree", "prune")


def _run(*command: str | Path) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def run_tests(root: Path, name: str, arguments: Sequence[str], wanted: Sequence[str] = ()) -> tuple[int | None, str]:
    """Run pytest in a copy; return its exit code, None where it hung and was killed, and what the plugin wrote."""
    LOGS.mkdir(parents=True, exist_ok=True)
    ended = LOGS / f"{name}.ended"
    ended.write_text("")
    env = os.environ | {ENDED: str(ended), WANTED: "\n".join(wanted)}
    with (LOGS / f"{name}.log").open("w") as log:
        command = [sys.executable, *PYTEST, *arguments]
        process = subprocess.Popen(command, cwd=root, env=env, stdout=log, stderr=log, start_new_session=True)
        while process.poll() is None and time.time() - ended.stat().st_mtime < PATIENCE:
            time.sleep(1)
        code = process.poll()
        if code is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, ended.read_text()


def plant(mutations: Sequence[Mutation], reached: Mapping[str, Sequence[str]]) -> Iterator[tuple[Mutation, str | Gone]]:
    """Plant each, and yield it with what catches it: a test, HUNG, START, "" where all pass, or Gone."""
    roots = SimpleQueue[Path]()

    def take(mutation: Mutation) -> str | Gone:
        root = roots.get()
        try:
            return catch(mutation, root, reached.get(str(mutation.number), ()))
        except Gone as gone:
            return gone
        finally:
            roots.put(root)

    with copied() as first, copied() as second, ThreadPoolExecutor(2) as pool:
        roots.put(first)
        roots.put(second)
        trials = {pool.submit(take, mutation): mutation for mutation in mutations}
        yield from ((trials[trial], trial.result()) for trial in as_completed(trials))


def catch(mutation: Mutation, root: Path, reached: Sequence[str]) -> str:
    """Return what catches a mutation in a copy: first the test that did before is run, then those that reach it.

    A test that fails among others and passes by itself has another reason, and is left out. HUNG and START count when
    they come twice.
    """
    source = mutation.write(root, mutation.after)
    log = str(mutation.number)
    try:
        reuse_migrated(root, anew=mutation.migrates)
        for names in ([mutation.caught_by], reached or guess_files(mutation.module, root)):
            without = list[str]()
            while failed := find_failing(root, log, names, without):
                if failed in (mutation.caught_by, *without) or find_failing(root, log, [failed]):
                    return failed
                without.append(failed)
        return ""
    finally:
        (root / mutation.module).write_text(source)
        if mutation.migrates:
            shutil.rmtree(root / MIGRATED, ignore_errors=True)


def find_failing(root: Path, log: str, names: Sequence[str], without: Sequence[str] = ()) -> str:
    """Run tests until one fails; return its name, HUNG, START or ""."""
    present = [name for name in names if name and (root / name.partition("::")[0]).is_file()]
    files = dict.fromkeys(name.partition("::")[0] for name in present)
    arguments = ["-x", *files, *(f"--deselect={test}" for test in without)]
    code, ended = run_tests(root, log, arguments, present) if files else (0, "")
    ends = map(json.loads, ended.splitlines())
    return HUNG if code is None else "" if code in PASSED else next((end[0] for end in ends if end[-1]), START)


def reuse_migrated(root: Path, *, anew: bool) -> None:
    """Give the copy's migrated database the key that it has now, which is of the code; `anew` removes it."""
    for folder in (root / MIGRATED).glob("*/"):
        if anew:
            shutil.rmtree(folder)
        else:
            done = subprocess.run([sys.executable, "-c", KEY], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
            folder.rename(folder.with_name(done.stdout.strip()))
