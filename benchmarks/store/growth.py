"""Measures how a save and a load grow with the history, for Holdpoint and LangGraph's two stores, and draws it.

    python -m benchmarks.store.growth [BUDGET [MOST]]

One run of each store grows to MOST checkpoints: each step appends a message of 100 bytes and replaces a cursor beside
a document of 50 KB. At each mark it says the p50 of the last steps and of loads of the latest state. A store that has
worked for BUDGET seconds stops at the mark it reached; PostgresSaver, whose steps grow with the history, after a
quarter of that. Draws docs/growth.svg if MOST is 30,000.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence

from benchmarks.parts.numbers import Point, point
from benchmarks.parts.scratch import ROOT, Scratch
from benchmarks.parts.workload import SHORT, Workload
from benchmarks.peers import environment as peers
from benchmarks.store.save_and_load import a_run

MARKS = (10, 100, 1_000, 10_000, 30_000)
STORES = {"ours": "Holdpoint", "delta": "LangGraph DeltaChannel", "saver": "LangGraph PostgresSaver"}
COLOURS = {"ours": "#2f6f4f", "delta": "#b0561d", "saver": "#5566aa"}
SAVER = 4  # the part of the budget that it gets: it reaches 1,000 in seconds, and 10,000 not in minutes
PICTURE = ROOT / "docs" / "growth.svg"


def main(budget: float = 120, most: int = MARKS[-1]) -> None:
    """Print the figures; draw them if no mark was left out for us."""
    marks = [mark for mark in MARKS if mark <= most]
    with Scratch() as scratch:
        found = {"ours": _ours(marks, budget)}
        for kind, seconds in (("delta", budget), ("saver", budget / SAVER)):
            found[kind] = peers.measure(scratch, "langgraph_stores", kind, round(seconds), *marks)["points"]
    print(f"{'checkpoints':<26}" + "".join(f"{mark:>18,}" for mark in marks))
    for kind, name in STORES.items():
        cells = [f"{point['save_ms']:8.2f} {point['load_ms']:7.2f} ms" for point in found[kind]]
        print(f"{name:<26}" + "".join(f"{cell:>18}" for cell in cells + ["stopped"] * (len(marks) - len(cells))))
    print(f"A step's p50 and a load's, in ms. Stopped: after {budget:g} s, PostgresSaver after {budget / SAVER:g} s.")
    if marks[-1] == MARKS[-1]:
        PICTURE.write_text(picture(found))
        print(f"Drawn: {PICTURE.relative_to(ROOT)}")


def _ours(marks: Sequence[int], budget: float) -> list[Point]:
    from checkpoints import store
    from checkpoints.actors import of_agent
    from checkpoints.store import claims
    from checkpoints.values.ops import Append

    work = Workload(marks[-1], message=SHORT)
    run, header, robo = a_run(work), store.Header("step", "work", "work"), of_agent("robo")
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="bench", lease=3600)
    assert claim is not None
    head, points, times, began = store.load(run), list[Point](), list[float](), time.perf_counter()
    for number, (message, cursor) in enumerate(zip(work.messages, work.cursors, strict=True), start=1):
        start = time.perf_counter()
        head = store.save(
            head, {"messages": Append([message]), "cursor": cursor}, claim=claim, header=header, actor=robo
        )
        times.append(time.perf_counter() - start)
        if number in marks:
            points.append(point(number, times, lambda: store.load(run)))
        if time.perf_counter() - began > budget:
            break
    return points


WIDTH, HEIGHT, LEFT, TOP = 300, 240, 46, 34  # of one panel's plot, and its margins


def picture(found: dict[str, list[Point]]) -> str:
    """Draw a step and a load against the checkpoints, on logarithmic axes, as SVG."""
    panels = [("a step, ms", "save_ms"), ("load of the latest, ms", "load_ms")]
    values = [point[key] for points in found.values() for point in points for _, key in panels]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    parts = [_panel(title, key, found, number * (WIDTH + 90), low, high) for number, (title, key) in enumerate(panels)]
    for number, (kind, name) in enumerate(STORES.items()):
        parts.append(
            f'<g transform="translate({LEFT + number * 220},{TOP + HEIGHT + 52})"><path d="M0 0h24" stroke="'
            f'{COLOURS[kind]}" stroke-width="2.5"/><text x="30" y="4">{name}</text></g>'
        )
    wide, high_px = 2 * (WIDTH + 90), TOP + HEIGHT + 70
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high_px}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#333"><title>How a step and a load grow with the '
        f'history</title><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _panel(title: str, key: str, found: dict[str, list[Point]], left: int, low: int, high: int) -> str:
    first, last = math.log10(MARKS[0]), math.log10(MARKS[-1])

    def x(checkpoints: float) -> float:
        return round(WIDTH * (math.log10(checkpoints) - first) / (last - first), 1)

    def y(ms: float) -> float:
        return round(HEIGHT * (high - math.log10(ms)) / (high - low), 1)

    parts = [f'<text y="-12" font-weight="600">{title}</text>']
    for mark in MARKS:
        parts.append(f'<path d="M{x(mark)} 0v{HEIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(mark)}" y="{HEIGHT + 18}" text-anchor="middle">{_short(mark)}</text>')
    for power in range(low, high + 1):
        parts.append(f'<path d="M0 {y(10**power)}h{WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="-8" y="{y(10**power) + 4}" text-anchor="end">{10**power:g}</text>')
    for kind, points in found.items():
        line = " ".join(f"{x(point['checkpoints'])},{y(point[key])}" for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2.5"/>')
        parts += [
            f'<circle cx="{x(point["checkpoints"])}" cy="{y(point[key])}" r="3" fill="{COLOURS[kind]}"/>'
            for point in points
        ]
    return f'<g transform="translate({left + LEFT},{TOP})">{"".join(parts)}</g>'


def _short(number: int) -> str:
    return f"{number // 1000}k" if number >= 1000 else str(number)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
