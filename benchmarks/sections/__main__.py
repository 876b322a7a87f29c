"""Measures one section, and prints each figure as a row as soon as it is reached."""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.scratch import Scratch
from benchmarks.sections import SECTIONS


def main(name: str, size: int | None = None) -> None:
    section = SECTIONS[name]
    module, _, function = section.function.partition(".")
    with Scratch(section.agents, section.settings) as scratch:
        measure = getattr(import_module(f"benchmarks.sections.{module}"), function)
        for figure in measure(scratch, size or section.size):
            print(f"| {' | '.join(figure.cells(name))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
