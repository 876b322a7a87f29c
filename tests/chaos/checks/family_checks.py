"""Checks of runs that start others, sleep, and hear signals; as those of .checker, which calls them.

Whoever was moved by a person after its end does as that person said: it is left out where only the runs' own course is
meant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ..history import Line, answered
from .violation import ENDED, Dump, Violation, World

MOVED = {"run.rewound", "run.edited"}
OPEN = {"done", "intended", "unknown"}  # of an effect that is neither undone nor named


def equal_children_do_it_once(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Of the children that one call of spawn started, one alone completed with effects that stand."""
    effects = _effects(dump)
    runs, moved = _runs(dump), _moved_by_people(dump)
    done = Counter[tuple[int, str, str, int, str]]()
    for child in dump["children"]:
        if child["ordered"] == "undo" or runs[child["run"]]["status"] != "completed" or child["run"] in moved:
            continue
        for row in effects[child["run"]]:
            if row["status"] == "done":
                done[child["parent"], child["step"], child["given"], child["number"], row["step"]] += 1
    for (parent, step, given, _number, effect), times in done.items():
        if times > 1:
            yield Violation("doubled", f"{times} equal children ({given[:8]}) of {step} of run {parent} did {effect}")


def parents_end_after_their_children(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Where a run completed, each child that it counts on, and needed, had ended before; where it ended, none lives.

    One that a person sent back lives again, and may wait for an answer that nobody else in this team may give: whoever
    wrote into it may not.
    """
    ends: defaultdict[int, list[int]] = defaultdict(list)
    for event in dump["events"]:
        if event["kind"].removeprefix("run.") in ENDED:
            ends[event["run"]].append(event["id"])
    runs, paths, moved = _runs(dump), _paths(dump), _moved_by_people(dump)
    for child in dump["children"]:
        parent, run = runs[child["parent"]], runs[child["run"]]
        name = f"run {run['id']}, which run {parent['id']} started,"
        if parent["status"] in ENDED and run["status"] not in ENDED and run["id"] not in moved:
            yield Violation("stuck", f"{name} is {run['status']}, and its parent is {parent['status']}")
        counted = parent["status"] == "completed" and paths(parent) & set(child["landings"]) and not child["ordered"]
        if counted and run["status"] in ENDED and min(ends[run["id"]]) > max(ends[parent["id"]]):
            yield Violation("early", f"{name} ended after its parent, which counts on it")


def left_children_are_undone(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """What children did that a completed run left behind is undone, or kept by name; so is what was to be undone."""
    effects = _effects(dump)
    runs, paths, moved = _runs(dump), _paths(dump), _moved_by_people(dump)
    for child in dump["children"]:
        parent, run = runs[child["parent"]], runs[child["run"]]
        if run["frozen"] or run["id"] in moved or parent["status"] not in ENDED:
            continue
        left = parent["status"] == "completed" and not paths(parent) & set(child["landings"])
        rows = [row for row in effects[run["id"]] if row["status"] in OPEN]
        for row in rows if left or child["ordered"] == "undo" else ():
            yield Violation(
                "left", f"{row['step']} of run {run['id']}, which run {parent['id']} left behind, is {row['status']}"
            )
        if child["ordered"] and not child["carried_out"] and run["status"] not in ENDED:
            yield Violation("left", f"run {run['id']} was to {child['ordered']}, and nobody began that")


def signals_are_kept(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Each acknowledged signal is there under its key once, with its value; no run waits while it has one unread."""
    rows = {row["id"]: row for row in dump["signals"]}
    by_key: defaultdict[tuple[int, str], set[int]] = defaultdict(set)
    for line in answered(history, "signal"):
        row, name = rows.get(line["id"]), f"the signal {line['named']} to run {line['run']}"
        by_key[line["run"], line["named"]].add(line["id"])
        if row is None or (row["run"], row["key"]) != (line["run"], line["named"]):
            yield Violation("lost", f"{name} was acknowledged, and is not there")
        elif row["value"] != {"word": line["word"]}:
            yield Violation("lost", f"{name} has another value than was sent")
    for (number, named), ids in by_key.items():
        if len(ids) > 1:
            yield Violation("twice", f"one signal {named} to run {number} is kept as {sorted(ids)}")
    read = {(wait["run"], wait["signal"]) for wait in dump["waits"]}
    unread = {(each["run"], each["name"]) for each in dump["signals"] if (each["run"], each["id"]) not in read}
    runs = _runs(dump)
    for wait in dump["waits"]:
        run = runs[wait["run"]]
        now = (run["status"], run["next_step"], run["head"]) == ("waiting", wait["step"], wait["head"])
        if now and wait["kind"] == "signal" and wait["signal"] is None and (wait["run"], wait["name"]) in unread:
            yield Violation("lost", f"run {wait['run']} waits for {wait['name']}, and has one that nobody read")


def signals_count_once(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """No execution reads a signal twice or out of order, and no booking has a word twice, or one that nobody sent."""
    read: defaultdict[tuple[int, str, str, str], list[int]] = defaultdict(list)
    for wait in sorted(dump["waits"], key=lambda wait: int(wait["number"])):
        if wait["signal"] is not None:
            read[wait["run"], wait["base"], wait["step"], wait["name"]].append(wait["signal"])
    for (run, _base, step, name), signals in read.items():
        if sorted(set(signals)) != signals:
            yield Violation("twice", f"{step} of run {run} read the signals {signals} of {name}")
    sent = {signal["value"]["word"]: signal["id"] for signal in dump["signals"]}
    for entry in world["entries"]:
        words = (entry.get("words") or "").split()
        numbers = [sent.get(word, 0) for word in words]
        if 0 in numbers:
            yield Violation("lost", f"the booking {entry['id']} has a word that no signal has")
        elif sorted(set(numbers)) != numbers:
            yield Violation("twice", f"the booking {entry['id']} has the signals {numbers}")


def timers_are_kept(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """No step that slept was saved before its time, unless somebody woke it."""
    saved = {(row["run"], row["parent"], row["step"]): row for row in dump["checkpoints"] if row["kind"] == "step"}
    for wait in dump["waits"]:
        row = saved.get((wait["run"], wait["head"], wait["step"]))
        if wait["kind"] == "timer" and not wait["ended_by"] and row is not None and row["at"] < wait["due"]:
            early = wait["due"] - row["at"]
            yield Violation("early", f"{wait['step']} of run {wait['run']} slept {early:.2f} s less than it was to")


CHECKS = (
    equal_children_do_it_once,
    parents_end_after_their_children,
    left_children_are_undone,
    signals_are_kept,
    signals_count_once,
    timers_are_kept,
)


def _paths(dump: Dump) -> Callable[[dict[str, Any]], set[str]]:
    """Return what finds the checkpoints on the way to a run's head."""
    parents = {row["id"]: row["parent"] for row in dump["checkpoints"]}

    def path(run: dict[str, Any]) -> set[str]:
        found: set[str] = set()
        at = run["head"]
        while at is not None:
            found.add(at)
            at = parents.get(at)
        return found

    return path


def _runs(dump: Dump) -> dict[int, dict[str, Any]]:
    return {run["id"]: run for run in dump["runs"]}


def _effects(dump: Dump) -> defaultdict[int, list[dict[str, Any]]]:
    """Return the effects of each run, without undos and what was taken over."""
    found: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in dump["effects"]:
        if row["undoes"] is None and row["taken_from"] is None:
            found[row["run"]].append(row)
    return found


def _moved_by_people(dump: Dump) -> set[int]:
    """Return the runs that a person moved after they had ended once."""
    ended: set[int] = set()
    moved: set[int] = set()
    for event in dump["events"]:
        if event["kind"].removeprefix("run.") in ENDED:
            ended.add(event["run"])
        elif event["kind"] in MOVED and event["run"] in ended and event["by_person"]:
            moved.add(event["run"])
    return moved
