"""`python -m benchmarks [--json FILE] [SECTION ...]`: runs each section in its own process and on its own servers.

After the last it prints all marks in one table; with `--json` it writes them to FILE after each section.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.marks import FILE, SECTION, Mark, read, table

# Section -> module.
SECTIONS = {
    "store": "store.save_and_load",
    "growth": "store.growth",
    "threads": "store.graph_threads",
    "runtime": "runs.runtime",
    "latency": "runs.latency",
    "graphs": "runs.graph_latency",
    "whole": "runs.whole_runs",
    "memory": "runs.memory",
    "rewinds": "runs.rewinds",
    "retention": "store.retention",
    "jobshop": "examples.jobshop",
    "pages": "pages.page_times",
    "sockets": "pages.sockets",
    "weight": "pages.weight",
    "clearing": "pages.clearing",
    "assistant": "examples.assistant",
    "outside": "outside.api_calls",
    "prompts": "outside.prompts",
    "notices": "outside.notices",
    "hostile": "operation.hostile",
    "bounds": "operation.bounds",
    "operating": "operation.operating",
    "flow": "flow.flow",
}


def main(arguments: Sequence[str]) -> int:
    """Run the given sections, or all; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"one of {', '.join(SECTIONS)}; all if none is given"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the marks for benchmarks.compare")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.sections) - set(SECTIONS)):
        parser.error(f"There is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}.")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}")
    failed, began, reached = [], time.monotonic(), list[Mark]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BENCH_TEMPLATE"] = folder
        kept = Path(folder) / "marks"
        kept.touch()
        for section in given.sections or SECTIONS:
            if not _ran(section, kept):
                failed.append(section)
            reached = read(kept.read_text().splitlines())
            if given.json:
                given.json.write_text(json.dumps([asdict(each) for each in reached], indent=1) + "\n")
    if reached:
        print(f"\n{table([['mark', 'measured', 'beside it', 'aim', ''], *(each.cells for each in reached)])}")
    print(f"\nall of it: {(time.monotonic() - began) / 60:.1f} min")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


def _ran(section: str, kept: Path) -> bool:
    """Run one section, which appends its marks to `kept`; print how long it took, and return whether it succeeded."""
    print(f"\n== {section}", flush=True)
    began = time.monotonic()
    environment = os.environ | {FILE: str(kept), SECTION: section, "PYTHONUNBUFFERED": "1"}
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{SECTIONS[section]}"], env=environment)
    print(f"  {section}: {time.monotonic() - began:.0f} s", flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
