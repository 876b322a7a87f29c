"""The commands that the package's docstring lists."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tests.mutations import listed, planting, probing
from tests.mutations.sites import Gone

REACHED = planting.LOGS / "reached.json"  # the tests that probes saw
PARALLEL = ("-n", "2", "--dist", "worksteal")


def check() -> int:
    """Look for every place in this tree, and say which are gone; return 1 where one is."""
    gone = 0
    for mutation in (each for each in listed.read() if not each.gone):
        try:
            mutation.find(listed.ROOT)
        except Gone as error:
            gone = 1
            sys.stdout.write(f"{mutation.number} {mutation.module}: {error}\n")
    return gone


def probe(arguments: Sequence[str]) -> None:
    """Run the tests with a probe at each place, and keep which tests reach it."""
    passed = planting.LOGS / "passed"
    passed.unlink(missing_ok=True)
    with planting.copied() as root:
        probing.plant_probes([mutation for mutation in listed.read() if not mutation.gone], root, passed)
        _, ended = planting.run_tests(root, "probed", arguments or PARALLEL)
    mutations = listed.read()
    reached, early = probing.read_reached(passed.read_text(), ended)
    nearest = {}
    for mutation in mutations:
        mutation.migrates = mutation.number in early
        nearest[mutation.number] = planting.sort_by_nearness(reached[mutation.number], mutation.module)
    REACHED.write_text(json.dumps(nearest, indent=1))
    listed.write(mutations)


def plant(numbers: Sequence[int]) -> int:
    """Plant these, or all but those that are known to escape; return 1 where one is caught no more, or gone."""
    mutations, worse = listed.read(), 0
    numbers = numbers or [mutation.number for mutation in mutations if not mutation.gone and not mutation.escaped]
    chosen = [mutation for mutation in mutations if mutation.number in numbers]
    for mutation, caught_by in planting.plant(chosen, json.loads(REACHED.read_text()) if REACHED.exists() else {}):
        before = mutation.caught_by
        sys.stdout.write(f"{mutation.number}: {caught_by or 'ESCAPES'}{before and f' (was: {before})'}\n")
        sys.stdout.flush()
        if isinstance(caught_by, Gone) or (before and not caught_by):
            worse = 1
        else:
            mutation.caught_by, mutation.escaped = caught_by, not caught_by
            listed.write(mutations)
    return worse


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.mutations", description=__doc__)
    parser.add_argument("command", choices=["draw", "check", "probe", "plant"])
    parser.add_argument("arguments", nargs="*", help="a seed to draw; pytest's to probe, after --; numbers to plant")
    asked = parser.parse_args()
    if asked.command == "draw":
        listed.write(listed.draw(int(asked.arguments[0]), 60), int(asked.arguments[0]))
    elif asked.command == "probe":
        probe(asked.arguments)
    else:
        return check() if asked.command == "check" else plant([int(number) for number in asked.arguments])
    return 0


if __name__ == "__main__":
    sys.exit(main())
