"""`python -m benchmarks [--quick] [SECTION ...]`: measures the sections one after another, and prints one table."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context

from benchmarks.figures import HEAD, format_table
from benchmarks.sections import SECTIONS, measure_section


def main(arguments: Sequence[str]) -> int:
    """Measure the given sections, or all; return 1 if one failed."""
    names = ", ".join(SECTIONS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"any of {names}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="small sizes, to show that every section works")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.sections) - set(SECTIONS)):
        parser.error(f"There is no section {', '.join(unknown)}; there are {names}.")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}")
    spawning, began, table, failed = get_context("spawn"), time.monotonic(), [HEAD], []
    for name in given.sections or SECTIONS:
        print(f"\n== {name}", flush=True)
        rows = spawning.SimpleQueue()
        size = SECTIONS[name].quick if given.quick else SECTIONS[name].size
        process = spawning.Process(target=measure_section, args=(name, size, rows))
        process.start()
        process.join()
        while not rows.empty():
            table.append(rows.get())
        failed += [name] if process.exitcode else []
    print(f"\n{format_table(table)}\n\nall of it: {(time.monotonic() - began) / 60:.1f} min")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
