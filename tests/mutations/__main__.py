"""The commands that the package's docstring lists."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tests.mutations import copies, listed, planting, probing
from tests.mutations.listed import ROOT

KEPT = ROOT / ".pytest_cache" / "mutations"  # what probes and pytest write
PASSED, ENDED, REACHED = KEPT / "passed", KEPT / "ended", KEPT / "reached.json"
FILES = 6  # of tests that the list keeps for each mutation
PARALLEL = ["-n", "2", "--dist", "worksteal"]


def probe(arguments: Sequence[str]) -> None:
    """Run the tests with a probe at each place, and keep which tests reach it."""
    mutations = [mutation for mutation in listed.read() if not mutation.gone]
    PASSED.unlink(missing_ok=True)
    with copies.copied() as root:
        probing.plant_probes(mutations, root, PASSED)
        copies.run_tests(root, arguments or PARALLEL, ENDED, KEPT / "probed.log", patience=1800)
    keep_reached()


def keep_reached() -> None:
    """Keep what the probes wrote: the names of the tests in a file of their own, the nearest files in the list."""
    mutations = listed.read()
    reached, migrating = probing.read_reached(PASSED.read_text(), ENDED.read_text())
    nearest = {each.number: planting.sort_by_nearness(reached[each.number], each.module) for each in mutations}
    REACHED.write_text(json.dumps(nearest, indent=1))
    for mutation in mutations:
        files = dict.fromkeys(test.partition("::")[0] for test in nearest[mutation.number])
        mutation.reached_by, mutation.migrates = list(files)[:FILES], mutation.number in migrating
        sys.stdout.write(f"{mutation.number}: {len(reached[mutation.number])} tests\n")
    listed.write(mutations)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="tests.mutations", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="draw a new list")
    drawing.add_argument("--seed", type=int, required=True)
    drawing.add_argument("--count", type=int, default=60)
    commands.add_parser("probe", help="run all tests, or pytest's arguments, with probes")
    replaying = commands.add_parser("plant", help="plant each by itself and run the tests that reach it")
    replaying.add_argument("numbers", type=int, nargs="*", help="of mutations; all without them")
    asked, rest = parser.parse_known_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    if asked.command == "draw":
        listed.write(listed.draw(asked.seed, asked.count), asked.seed)
    elif asked.command == "probe":
        probe(rest)
    else:
        reached = json.loads(REACHED.read_text()) if REACHED.exists() else {}
        return planting.plant(asked.numbers, reached, KEPT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
