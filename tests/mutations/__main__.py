"""The commands that the package's docstring lists."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tests.mutations import copies, listed, planting, probing
from tests.mutations.listed import ROOT

KEPT = ROOT / ".pytest_cache" / "mutations"  # what the probes found, whole, and what pytest said
FILES = 6  # of tests that the list keeps for each mutation
PARALLEL = ["-n", "2", "--dist", "worksteal"]


def probe(arguments: Sequence[str]) -> None:
    """Run the tests with a probe at each place; keep which tests reach it."""
    mutations = listed.read()
    standing = [mutation for mutation in mutations if not mutation.gone]
    passed, tests = KEPT / "passed", KEPT / "tests"
    passed.unlink(missing_ok=True)
    with copies.copied() as root:
        probing.plant_probes(standing, root, passed)
        copies.run_tests(root, arguments or PARALLEL, tests, KEPT / "probed.log", patience=1800)
    reached, migrating = probing.reaching(passed.read_text(), tests.read_text())
    for mutation in standing:
        found = planting.by_nearness(reached[mutation.number], mutation.module)
        reached[mutation.number] = {test: reached[mutation.number][test] for test in found}
        mutation.reached_by = list(dict.fromkeys(test.partition("::")[0] for test in found))[:FILES]
        mutation.migrates = mutation.number in migrating
        sys.stdout.write(f"{mutation.number}: {len(found)} tests\n")
    (KEPT / "reached.json").write_text(json.dumps(reached, indent=1))
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
        return planting.plant(asked.numbers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
