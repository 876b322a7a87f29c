"""Counts what happened in a campaign, and how soon runs went on whose worker was killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ..faults.nemesis import Nemesis
from ..installation.stack import LEASE
from .violation import ENDED, Violation

KILLS = ("kill worker", "kill child")
# What delays no run that goes on: it needs workers, the sweeper, PostgreSQL and Redis.
HARMLESS = ("kill program", "kill provider", "provider fails", "kill web", "pause web", "restart web", "crash web",
            "kill beat", "pause beat", "two sweepers", "fill disk", "deliver thrice")  # fmt: skip
WITHIN = LEASE + 2.0  # seconds


def counted(
    history: list[dict[str, Any]],
    world: dict[str, Any],
    dump: dict[str, list[dict[str, Any]]],
    nemesis: Nemesis,
    rested: float | None,
    found: list[Violation],
) -> dict[str, Any]:
    kinds = Counter("doubled" if each.kind == "twice" else each.kind for each in found)
    events = Counter(event["kind"] for event in dump["events"])
    requests = Counter(f"{line['f']} {line['type']}" for line in history if line["type"] != "invoke")
    return {
        "runs in all": len(dump["runs"]),
        "ended": sum(run["status"] in ENDED for run in dump["runs"]),
        "runs": dict(Counter(f"{run['agent']} {run['status']}" for run in dump["runs"])),
        "effects": dict(Counter(f"{row['step']} {row['status']}" for row in dump["effects"])),
        "entries outside": len(world["entries"]),
        "requests": dict(sorted((name, n) for name, n in requests.items() if not name.startswith("fault"))),
        "faults": dict(nemesis.done) | {"in all": nemesis.done.total()},
        "crash points reached": dict(nemesis.bitten),
        "resumed": len(takeovers(dump)),
        "resumed after kill -9": told(after_kills(history, dump)),
        "fenced": events["worker.fenced"],
        "failed attempts": events["step.failed"],
        "unknown effects": events["effect.unknown"],
        "undone effects": events["effect.undone"],
        "contradicted": events["effect.contradicted"],
        "rest after": "never" if rested is None else f"{rested:.1f} s",
        **{name: kinds[name] for name in ("lost", "doubled", "unapproved", "early", "left", "stuck", "audit")},
    }


def takeovers(dump: dict[str, list[dict[str, Any]]]) -> list[float]:
    """Return the moments at which a run was claimed whose worker had not let go of it."""
    last: dict[int, str] = {}
    found = []
    for event in dump["events"]:
        if event["kind"].startswith("run.") and event["kind"] not in ("run.halting", "run.missed", "run.heard"):
            if event["kind"] == last.get(event["run"]) == "run.running":
                found.append(event["at"])
            last[event["run"]] = event["kind"]
    return found


def after_kills(history: list[dict[str, Any]], dump: dict[str, list[dict[str, Any]]]) -> list[float]:
    """Return the seconds from a kill of a worker to each takeover after it, where nothing else was broken meanwhile."""
    broken = faults(history)
    kills = [begun for name, begun, _ in broken if name in KILLS]
    others = [each for each in broken if each[0] not in (*KILLS, *HARMLESS)]
    found = []
    for at in takeovers(dump):
        kill = max((each for each in kills if each <= at), default=None)
        if kill is None or any(begun <= at and healed >= kill - LEASE for _, begun, healed in others):
            continue
        found.append(at - kill)
    return sorted(found)


def faults(history: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Return (name, begun, healed) of each fault; one that is not healed yet lasts for ever."""
    healed = {line["op"]: _moment(line) for line in history if line["f"] == "fault" and line["type"] != "invoke"}
    begun = [line for line in history if line["f"] == "fault" and line["type"] == "invoke"]
    return [(line["fault"], _moment(line), healed.get(line["op"], float("inf"))) for line in begun]


def told(took: Sequence[float]) -> str:
    if not took:
        return "none that nothing else disturbed"
    middle = took[len(took) // 2]
    almost = f"p99 {took[int(len(took) * 0.99)]:.1f} s, " if len(took) >= 100 else ""
    late = sum(each > WITHIN for each in took)
    most = f"p50 {middle:.1f} s, {almost}most {took[-1]:.1f} s"
    return f"{len(took)} times undisturbed: {most}; {late} over lease + 2 s = {WITHIN:.0f} s"


def _moment(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["time"]).timestamp()
