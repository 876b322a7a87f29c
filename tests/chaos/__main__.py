"""`python -m tests.chaos --minutes 10 --seed 7`: what `make chaos` runs. Exit code 1 where anything is wrong."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

from tests.harness import services

from .campaign import Campaign, Report
from .checks.checker import violations
from .faults.catalogue import LANES
from .history import read


def main() -> int:
    names = [fault.name for lane in LANES for fault in lane]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None, help="where everything is left (default: a new one)")
    parser.add_argument(
        "--only", action="append", default=[], choices=names, help="this kind of fault; may be repeated"
    )
    parser.add_argument("--gap", type=float, default=1.5, help="seconds between two faults of the workers")
    parser.add_argument("--check", type=Path, default=None, help="check the folder of an earlier campaign once more")
    parser.add_argument("--calm", action="store_true", help="no faults")
    asked = parser.parse_args()
    if asked.check is not None:
        return checked_again(asked.check)
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    folder = asked.folder or Path(tempfile.mkdtemp(prefix=f"holdpoint-chaos-{seed}-", dir="/tmp"))
    tell(f"seed {seed}\nlog, history and dump in {folder}")
    kinds = ["none"] if asked.calm else asked.only
    try:
        report = Campaign(asked.minutes * 60, seed, folder, kinds=kinds, gap=asked.gap).run()
    finally:
        services.WARM.close()
    (folder / "report.json").write_text(json.dumps(report.counts, indent=1))
    say(report)
    tell(f"seed {seed}, folder {folder}")
    return 0 if report.ok else 1


def checked_again(folder: Path) -> int:
    """Check what an earlier campaign left; print what is wrong, and return the exit code."""
    world, dump = (json.loads((folder / f"{name}.json").read_text()) for name in ("outside", "dump"))
    found = violations(read(folder / "history.jsonl"), world, dump)
    say(Report(found, {"violations": len(found)}))
    return 1 if found else 0


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say(report: Report) -> None:
    for name, value in report.counts.items():
        told = ", ".join(f"{part} {n}" for part, n in value.items()) if isinstance(value, dict) else value
        tell(f"{name + ':':<22} {told}")
    for broken in report.broken:
        tell(f"the harness failed: {broken}")
    for violation in report.violations:
        tell(f"VIOLATION {violation.kind}: {violation.says}")


if __name__ == "__main__":
    sys.exit(main())
