"""Checks that each run has come to rest: it has ended, or waits for something that will come.

A run that waits is at rest for one reason alone: as many of its children as it waits for are still to end, its timer is
to come, it hears the signal of its present wait, or it asks. What it waited for earlier, or at another checkpoint, is
no reason: so a wake-up that was lost shows, whatever else the run has open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..history import Line
from .violation import ENDED, Dump, Violation, World


def runs_rest(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Each run has ended, with nothing open or unknown, or waits for something that will come."""
    yield from (Violation("stuck", says) for says in ended_in_doubt(dump) + not_at_rest(dump))
    for run in dump["runs"]:
        if run["frozen"]:
            yield Violation("audit", f"{_name(run)} is frozen: {run['reason']}")


def ended_in_doubt(dump: Dump) -> list[str]:
    """Say which runs have ended and still ask, or do not know what came of an effect."""
    asking = {gate["run"] for gate in dump["gates"] if gate["status"] == "open"}
    doubtful = {row["run"]: row for row in dump["effects"] if row["status"] in ("intended", "unknown")}
    found = []
    for run in dump["runs"]:
        if run["frozen"] or run["status"] not in ENDED:
            continue
        if run["id"] in asking:
            found.append(f"{_name(run)} is {run['status']}, and still asks")
        elif run["id"] in doubtful and not _left_open(run, dump):
            row = doubtful[run["id"]]
            found.append(f"{_name(run)} is {run['status']}, and {row['step']} {row['key'][:8]} is {row['status']}")
    return found


def not_at_rest(dump: Dump) -> list[str]:
    """Say which runs neither have ended nor wait for something that will come."""
    coming = _children_to_end(dump)
    asking = {gate["run"] for gate in dump["gates"] if gate["status"] == "open"}
    waits = {(wait["run"], wait["step"], wait["head"]) for wait in dump["waits"] if _hears(wait)}
    found = []
    for run in dump["runs"]:
        if run["frozen"] or run["status"] in ENDED:
            continue
        awaited = run.get("awaited", min(coming[run["id"]], 1))  # a dump of an older campaign has no number
        if run["status"] != "waiting":
            found.append(f"{_name(run)} is {run['status']} at {run['next_step']}: {run['reason']}")
        elif awaited > coming[run["id"]]:
            found.append(f"{_name(run)} waits for {awaited} children, and {coming[run['id']]} are to end")
        elif run.get("overdue"):
            found.append(f"{_name(run)} was to wake long ago: {run['reason']}")
        elif not (awaited or run["timed"] or run["id"] in asking or _here(run) in waits):
            found.append(f"{_name(run)} waits for nothing: {run['reason']}")
    return found


def _children_to_end(dump: Dump) -> Counter[int]:
    """Count, for each run, the children that live, or are to be undone and were not reached yet."""
    live = {run["id"] for run in dump["runs"] if run["status"] not in ENDED}
    return Counter(
        child["parent"]
        for child in dump["children"]
        if child["run"] in live or (child["ordered"] and not child["carried_out"])
    )


def _hears(wait: dict[str, Any]) -> bool:
    return wait["kind"] == "signal" and wait["signal"] is None and not wait["ended_by"]


def _here(run: dict[str, Any]) -> tuple[int, str, str]:
    """Return the run, step and checkpoint of the wait that a run is in now."""
    return run["id"], run["next_step"], run["head"]


def _left_open(run: dict[str, Any], dump: Dump) -> bool:
    """Tell whether a person stopped the run and left the question unanswered, or cancelled it in the middle."""
    ends = [each for each in dump["events"] if (each["kind"], each["run"]) == ("run.cancelled", run["id"])]
    return bool(ends and ends[-1]["by_person"]) or any(
        outcome["answer"] and outcome["answer"].get("choice") in ("stop", "left_open")
        for outcome in dump["outcomes"]
        if any(gate["id"] == outcome["gate"] and gate["run"] == run["id"] for gate in dump["gates"])
    )


def _name(run: dict[str, Any]) -> str:
    return f"run {run['id']} ({run['agent']})"
