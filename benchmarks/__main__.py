"""`python -m benchmarks [SECTION ...]`: runs each section in its own process and on its own servers."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

# Section -> module.
SECTIONS = {
    "store": "store",
    "growth": "growth",
    "runtime": "runtime",
    "latency": "latency",
    "whole": "whole_runs",
    "memory": "memory",
    "rewinds": "graphs",
    "retention": "retention",
    "jobshop": "jobshop",
    "pages": "pages",
    "sockets": "sockets",
    "weight": "weight",
    "assistant": "assistant",
    "outside": "outside",
    "hostile": "hostile",
    "bounds": "bounds",
    "operating": "operating",
}


def main(asked: list[str]) -> int:
    """Run the given sections, or all; return 1 if one failed."""
    unknown = sorted(set(asked) - set(SECTIONS))
    if unknown:
        print(f"There is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}.")
        return 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}")
    failed = []
    for section in asked or SECTIONS:
        print(f"\n== {section}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{SECTIONS[section]}"]).returncode:
            failed.append(section)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
